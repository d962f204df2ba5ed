package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.state.Revision;
import io.pravega.client.state.RevisionedStreamClient;
import io.pravega.client.state.SynchronizerConfig;
import io.sluice.client.Events;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.util.ArrayList;
import java.util.List;

/** Two clients write to one stream on the condition that nobody else has; one of them is refused. */
public final class RevisionedStreams implements Scenario {
    @Override
    public void run(Session session) {
        session.stream("st", 1);
        SynchronizerClientFactory factory =
                session.closing(SynchronizerClientFactory.withScope(session.scope(), session.config()));
        RevisionedStreamClient<String> one = open(session, factory);
        RevisionedStreamClient<String> two = open(session, factory);

        Revision empty = one.fetchLatestRevision();
        Revision first = one.writeConditionally(empty, "first");
        assertNotNull(first, "the first write on the empty stream");
        assertNull(two.writeConditionally(empty, "refused"), "a write on a revision that is not the last one");
        assertNotNull(two.writeConditionally(first, "second"), "a write on the last revision");
        assertEquals(List.of("first", "second"), read(two, empty), "all");
        assertEquals(List.of("second"), read(one, first), "what came after the first");

        assertTrue(one.compareAndSetMark(null, first), "the mark is set");
        assertFalse(two.compareAndSetMark(null, empty), "a mark that is set already");
        assertEquals(first, two.getMark(), "the mark, for the other one");
        one.truncateToRevision(first);
        assertEquals(first, two.fetchOldestRevision(), "the oldest revision after truncation");
    }

    private static RevisionedStreamClient<String> open(Session session, SynchronizerClientFactory factory) {
        SynchronizerConfig config = SynchronizerConfig.builder().build();
        return session.closing(factory.createRevisionedStreamClient("st", Events.TEXT, config));
    }

    private static List<String> read(RevisionedStreamClient<String> client, Revision from) {
        List<String> values = new ArrayList<>();
        client.readFrom(from).forEachRemaining(entry -> values.add(entry.getValue()));
        return values;
    }
}
