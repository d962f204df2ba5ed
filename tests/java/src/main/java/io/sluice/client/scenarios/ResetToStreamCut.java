package io.sluice.client.scenarios;

import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;

/** A group that has read everything goes back to a cut in the middle, then to the very beginning. */
public final class ResetToStreamCut implements Scenario {
    private static final int HALF = 200;
    private static final int ALL = 400;

    @Override
    public void run(Session session) throws Exception {
        Stream stream = session.stream("st", 2);
        EventStreamWriter<String> writer = Events.writer(session, "st");
        Events.write(writer, 0, HALF);
        StreamCut head = session.streams().fetchStreamInfo(session.scope(), "st").get().getHeadStreamCut();
        StreamCut middle = session.streams().fetchStreamInfo(session.scope(), "st").get().getTailStreamCut();
        Events.write(writer, HALF, ALL);
        ReaderGroup group = Groups.create(session, "rg", "st");
        GroupReader reader = new GroupReader(session, "rg", "reader-1");
        Events.checkExactlyOnce(reader.read(ALL), 0, ALL);

        group.resetReaderGroup(Groups.config().stream(stream, middle).build());
        reader.readUntilReset();
        reader = new GroupReader(session, "rg", "reader-2");
        Events.checkExactlyOnce(reader.read(ALL - HALF), HALF, ALL);

        group.resetReaderGroup(Groups.config().stream(stream, head).build());
        reader.readUntilReset();
        reader = new GroupReader(session, "rg", "reader-3");
        Events.checkExactlyOnce(reader.read(ALL), 0, ALL);
        reader.close();
    }
}
