package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.admin.KeyValueTableManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.tables.KeyValueTableConfiguration;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;

/** A scope is deleted with all that is in it: streams with data, open and sealed, a reader group, a table. */
public final class RecursiveScopeDeletion implements Scenario {
    private static final KeyValueTableConfiguration TABLE =
            KeyValueTableConfiguration.builder().partitionCount(2).primaryKeyLength(4).build();

    @Override
    public void run(Session session) throws Exception {
        String scope = session.scope();
        fill(session);
        StreamManager streams = session.streams();
        assertTrue(streams.deleteScopeRecursive(scope), "the scope is deleted");
        assertFalse(streams.checkScopeExists(scope), "the scope is gone");
        assertTrue(streams.createScope(scope), "its name is free again");
        assertFalse(streams.listStreams(scope).hasNext(), "the new scope is empty");
        assertFalse(streams.checkStreamExists(scope, "open"), "the stream is gone");
        assertTrue(streams.deleteScope(scope), "the new scope is deleted");
    }

    private static void fill(Session session) {
        session.stream("open", 2);
        session.stream("sealed", 1);
        assertTrue(session.streams().sealStream(session.scope(), "sealed"), "the stream is sealed");
        Events.write(Events.writer(session, "open"), 0, 10);
        Groups.create(session, "rg", "open");
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            assertEquals(10, reader.read(10).size(), "events");
        }
        try (KeyValueTableManager tables = KeyValueTableManager.create(session.config())) {
            assertTrue(tables.createKeyValueTable(session.scope(), "table", TABLE), "the table is new");
        }
    }
}
