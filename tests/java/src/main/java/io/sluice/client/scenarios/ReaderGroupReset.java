package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.stream.Checkpoint;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.sluice.client.Deadline;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;

/** A group goes back to a checkpoint, then to a stream cut, and reads from there again. */
public final class ReaderGroupReset implements Scenario {
    private static final int EVENTS = 400;

    @Override
    public void run(Session session) {
        Stream stream = session.stream("st", 2);
        Events.write(Events.writer(session, "st"), 0, EVENTS);
        ReaderGroup group = Groups.create(session, "rg", "st");
        ScheduledExecutorService threads = Executors.newSingleThreadScheduledExecutor();
        session.closing(threads::shutdownNow);
        awaitUnread(group, bytes(0), "all is unread");

        GroupReader reader = new GroupReader(session, "rg", "reader-1");
        List<String> before = new ArrayList<>(reader.read(EVENTS / 4));
        Checkpoint checkpoint = reader.readUntil(group.initiateCheckpoint("cp", threads), before);
        List<String> between = new ArrayList<>(reader.read(EVENTS / 4));
        CompletableFuture<Map<Stream, StreamCut>> generated = group.generateStreamCuts(threads);
        // Which events lie before the generated cuts is for the group to say; what is read from them on has to agree.
        Map<Stream, StreamCut> cuts = reader.readUntil(generated, between);
        readRest(reader, before, between);
        awaitUnread(group, 0, "all is read");

        group.resetReaderGroup(Groups.config().startFromCheckpoint(checkpoint).build());
        reader.readUntilReset();
        List<String> again = readAgain(session, EVENTS - before.size(), "reader-2", group);
        again.addAll(before);
        Events.checkExactlyOnce(again, 0, EVENTS);

        group.resetReaderGroup(Groups.config().stream(stream, cuts.get(stream)).build());
        List<String> rest = readAgain(session, 1, "reader-3", group);
        assertEquals(List.of(), rest.stream().filter(before::contains).toList(), "events from before the cut");
    }

    private static void readRest(GroupReader reader, List<String> before, List<String> between) {
        List<String> all = new ArrayList<>(before);
        all.addAll(between);
        all.addAll(reader.read(EVENTS - all.size()));
        Events.checkExactlyOnce(all, 0, EVENTS);
        Events.checkOrder(all);
    }

    private static List<String> readAgain(Session session, int count, String name, ReaderGroup group) {
        try (GroupReader reader = new GroupReader(session, "rg", name)) {
            return new ArrayList<>(reader.read(count));
        }
    }

    private static void awaitUnread(ReaderGroup group, long bytes, String what) {
        Deadline.in(Duration.ofSeconds(15)).await(() -> group.getMetrics().unreadBytes() == bytes,
                what + ": " + bytes + " unread bytes");
    }

    private static long bytes(int ignored) {
        return 0;
    }
}
