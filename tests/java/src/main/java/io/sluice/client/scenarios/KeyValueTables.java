package io.sluice.client.scenarios;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.KeyValueTableFactory;
import io.pravega.client.admin.KeyValueTableInfo;
import io.pravega.client.admin.KeyValueTableManager;
import io.pravega.client.tables.BadKeyVersionException;
import io.pravega.client.tables.Insert;
import io.pravega.client.tables.IteratorItem;
import io.pravega.client.tables.KeyValueTable;
import io.pravega.client.tables.KeyValueTableClientConfiguration;
import io.pravega.client.tables.KeyValueTableConfiguration;
import io.pravega.client.tables.Put;
import io.pravega.client.tables.Remove;
import io.pravega.client.tables.TableEntry;
import io.pravega.client.tables.TableKey;
import io.pravega.client.tables.TableModification;
import io.pravega.client.tables.Version;
import io.pravega.common.util.AsyncIterator;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;

/** A table is created, listed, filled, changed on conditions, iterated and deleted. */
public final class KeyValueTables implements Scenario {
    private static final int ENTRIES = 20;
    private static final KeyValueTableConfiguration CONFIG =
            KeyValueTableConfiguration.builder().partitionCount(2).primaryKeyLength(4).secondaryKeyLength(0).build();

    @Override
    public void run(Session session) throws Exception {
        String scope = session.scope();
        KeyValueTableManager tables = session.closing(KeyValueTableManager.create(session.config()));
        assertTrue(tables.createKeyValueTable(scope, "table", CONFIG), "the table is new");
        assertFalse(tables.createKeyValueTable(scope, "table", CONFIG), "a table is created once only");
        assertEquals(Set.of("table"), names(tables, scope), "tables of the scope");

        KeyValueTableFactory factory =
                session.closing(KeyValueTableFactory.withScope(scope, session.config()));
        KeyValueTableClientConfiguration config = KeyValueTableClientConfiguration.builder().build();
        try (KeyValueTable table = factory.forKeyValueTable("table", config)) {
            change(table);
            iterate(table);
        }
        assertThrows(IllegalStateException.class, () -> session.streams().deleteScope(scope),
                "a scope with a table stays");
        assertTrue(tables.deleteKeyValueTable(scope, "table"), "the table is deleted");
        assertFalse(tables.deleteKeyValueTable(scope, "table"), "a table is deleted once only");
        assertEquals(Set.of(), names(tables, scope), "tables of the scope in the end");
    }

    private static void change(KeyValueTable table) throws Exception {
        Version inserted = table.update(new Insert(key(0), text("one"))).get();
        assertConflict(table, new Insert(key(0), text("two")), "an insert of a key that is there");
        Version changed = table.update(new Put(key(0), text("three"), inserted)).get();
        assertConflict(table, new Put(key(0), text("four"), inserted), "an update of an old version");
        assertEquals("three", text(table.get(key(0)).get().getValue()), "the value");
        assertConflict(table, new Remove(key(0), inserted), "a removal of an old version");
        table.update(new Remove(key(0), changed)).get();
        assertNull(table.get(key(0)).get(), "an entry that was removed");
        assertFalse(table.exists(key(0)).get(), "the key is gone");
    }

    private static void iterate(KeyValueTable table) throws Exception {
        Map<String, String> expected = new TreeMap<>();
        for (int number = 0; number < ENTRIES; number++) {
            table.update(new Put(key(number), text("value " + number))).get();
            expected.put(text(key(number).getPrimaryKey()), "value " + number);
        }
        Map<String, String> found = new TreeMap<>();
        AsyncIterator<IteratorItem<TableEntry>> pages = table.iterator().maxIterationSize(7).all().entries();
        for (IteratorItem<TableEntry> page = pages.getNext().get(); page != null; page = pages.getNext().get()) {
            page.getItems().forEach(e -> found.put(text(e.getKey().getPrimaryKey()), text(e.getValue())));
        }
        assertEquals(expected, found, "entries");
        List<TableKey> keys = List.of(key(3), key(ENTRIES));
        List<TableEntry> some = table.getAll(keys).get();
        assertEquals("value 3", text(some.get(0).getValue()), "an entry that was asked for");
        assertNull(some.get(1), "an entry that was never there");
    }

    private static void assertConflict(KeyValueTable table, TableModification update, String what) {
        ExecutionException refused = assertThrows(ExecutionException.class, () -> table.update(update).get(), what);
        assertInstanceOf(BadKeyVersionException.class, refused.getCause(), what);
    }

    private static Set<String> names(KeyValueTableManager tables, String scope) {
        List<KeyValueTableInfo> infos = new ArrayList<>();
        tables.listKeyValueTables(scope).forEachRemaining(infos::add);
        Set<String> names = new HashSet<>();
        infos.forEach(info -> names.add(info.getKeyValueTableName()));
        return names;
    }

    private static TableKey key(int number) {
        return new TableKey(text("%04d".formatted(number)));
    }

    private static ByteBuffer text(String value) {
        return ByteBuffer.wrap(value.getBytes(UTF_8));
    }

    private static String text(ByteBuffer bytes) {
        return UTF_8.decode(bytes.duplicate()).toString();
    }
}
