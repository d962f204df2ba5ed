package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupNotFoundException;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;

/** Two readers of a group share a stream; between them they see each event once, and then its end. */
public final class ReadingExactlyOnce implements Scenario {
    private static final int EVENTS = 2000;

    @Override
    public void run(Session session) {
        session.stream("st", 4);
        Events.write(Events.writer(session, "st"), 0, EVENTS);
        ReaderGroup group = Groups.create(session, "rg", "st");
        assertEquals(Set.of(session.scope() + "/st"), group.getStreamNames(), "streams of the group");
        assertTrue(session.streams().sealStream(session.scope(), "st"), "the stream is sealed");

        CompletableFuture<List<String>> other =
                CompletableFuture.supplyAsync(() -> readAll(session, "reader-2"), session.threads());
        List<String> events = new ArrayList<>(readAll(session, "reader-1"));
        events.addAll(other.join());
        Events.checkExactlyOnce(events, 0, EVENTS);
        assertEquals(Set.of(), group.getOnlineReaders(), "readers that are left");

        session.groups().deleteReaderGroup("rg");
        assertThrows(ReaderGroupNotFoundException.class, () -> session.groups().getReaderGroup("rg"),
                "the group is gone");
    }

    private static List<String> readAll(Session session, String name) {
        try (GroupReader reader = new GroupReader(session, "rg", name)) {
            return reader.readToEnd();
        }
    }
}
