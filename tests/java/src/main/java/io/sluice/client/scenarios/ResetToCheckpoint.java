package io.sluice.client.scenarios;

import io.pravega.client.stream.Checkpoint;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.Stream;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.util.ArrayList;
import java.util.List;

/** A group takes a checkpoint, reads on, goes back to the checkpoint and reads the rest again. */
public final class ResetToCheckpoint implements Scenario {
    private static final int EVENTS = 400;

    @Override
    public void run(Session session) {
        Stream stream = session.stream("st", 2);
        Events.write(Events.writer(session, "st"), 0, EVENTS);
        ReaderGroup group =
                Groups.create(session, "rg", Groups.configWithoutCheckpoints().stream(stream).build());
        GroupReader reader = new GroupReader(session, "rg", "reader-1");
        List<String> before = new ArrayList<>(reader.read(EVENTS / 4));
        Checkpoint checkpoint = reader.checkpoint(group, "cp", before);
        List<String> first = new ArrayList<>(before);
        first.addAll(reader.read(EVENTS - before.size()));
        Events.checkExactlyOnce(first, 0, EVENTS);
        Events.checkOrder(first);

        group.resetReaderGroup(Groups.config().startFromCheckpoint(checkpoint).build());
        reader.readUntilReset();
        List<String> second = new ArrayList<>(before);
        try (GroupReader again = new GroupReader(session, "rg", "reader-2")) {
            second.addAll(again.read(EVENTS - before.size()));
        }
        Events.checkExactlyOnce(second, 0, EVENTS);
        Events.checkOrder(second);
    }
}
