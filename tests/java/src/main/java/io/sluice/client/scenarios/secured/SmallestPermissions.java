package io.sluice.client.scenarios.secured;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.KeyValueTableFactory;
import io.pravega.client.admin.KeyValueTableManager;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.tables.Insert;
import io.pravega.client.tables.KeyValueTable;
import io.pravega.client.tables.KeyValueTableClientConfiguration;
import io.pravega.client.tables.KeyValueTableConfiguration;
import io.pravega.client.tables.TableKey;
import io.pravega.shared.security.auth.DefaultCredentials;
import io.sluice.client.Deadline;
import io.sluice.client.Events;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.function.Executable;

/**
 * An administrator makes a stream and a table; a writer, a reader and a user of the table work with them, each with the
 * least permissions that this needs. What else they try is refused, and so is who has a wrong password.
 *
 * <p>The property {@code sluice.security} names a folder with the authority and a file {@code <user>.password} of each.
 */
public final class SmallestPermissions implements Scenario {
    private static final Path FOLDER = Path.of(System.getProperty("sluice.security", "security"));
    private static final String SCOPE = "demo";
    private static final String STREAM = "java";
    private static final int EVENTS = 100;
    private static final Duration DEADLINE = Duration.ofSeconds(60);
    private static final StreamConfiguration CONFIG =
            StreamConfiguration.builder().scalingPolicy(ScalingPolicy.fixed(2)).build();

    @Override
    public void run(Session session) throws Exception {
        session.streams().createScope(SCOPE);
        assertTrue(session.streams().createStream(SCOPE, STREAM, CONFIG), "the administrator creates a stream");
        ClientConfig writer = as(session, "writer", password("writer"));
        ClientConfig reader = as(session, "reader", password("reader"));
        write(session, writer);
        read(session, reader);
        useTable(session, as(session, "tables", password("tables")));

        refused("PERMISSION_DENIED", streams(session, writer)::createScope, "other");
        refused("PERMISSION_DENIED", streams(session, reader)::deleteScope, SCOPE);
        StreamManager writers = streams(session, writer);
        refused("PERMISSION_DENIED", () -> writers.createStream(SCOPE, "other", CONFIG));
        StreamManager readers = streams(session, reader);
        refused("PERMISSION_DENIED", () -> readers.sealStream(SCOPE, STREAM));
        refused("PERMISSION_DENIED", () -> begin(session, reader));
        refused("UNAUTHENTICATED", streams(session, as(session, "reader", "wrong"))::checkScopeExists, SCOPE);
        refused("UNAUTHENTICATED", streams(session, as(session, "nobody", "wrong"))::checkScopeExists, SCOPE);
    }

    private static void write(Session session, ClientConfig config) throws Exception {
        try (EventStreamClientFactory factory = EventStreamClientFactory.withScope(SCOPE, config)) {
            EventWriterConfig options = EventWriterConfig.builder().build();
            try (EventStreamWriter<String> writer = factory.createEventWriter(STREAM, Events.TEXT, options)) {
                Events.write(writer, 0, EVENTS);
            }
            try (TransactionalEventStreamWriter<String> writer =
                    factory.createTransactionalEventWriter("writer", STREAM, Events.TEXT, options)) {
                Transaction<String> transaction = writer.beginTxn();
                for (int number = EVENTS; number < 2 * EVENTS; number++) {
                    transaction.writeEvent(Events.routingKey(number), Integer.toString(number));
                }
                transaction.commit();
                Deadline.in(DEADLINE).await(() -> transaction.checkStatus() == Transaction.Status.COMMITTED,
                        "the transaction is committed");
                writer.beginTxn().abort();
            }
        }
    }

    private static void read(Session session, ClientConfig config) {
        try (ReaderGroupManager groups = ReaderGroupManager.withScope(SCOPE, config);
                EventStreamClientFactory factory = EventStreamClientFactory.withScope(SCOPE, config)) {
            groups.createReaderGroup("java", Groups.config().stream(SCOPE + "/" + STREAM).build());
            Deadline deadline = Deadline.in(DEADLINE);
            List<String> events = new ArrayList<>();
            try (EventStreamReader<String> reader =
                    factory.createReader("reader", "java", Events.TEXT, ReaderConfig.builder().build())) {
                while (events.size() < 2 * EVENTS) {
                    deadline.check("the events are read; " + events.size() + " were");
                    String event = reader.readNextEvent(100).getEvent();
                    if (event != null) {
                        events.add(event);
                    }
                }
            }
            Events.checkExactlyOnce(events, 0, 2 * EVENTS);
            Events.checkOrder(events);
            groups.deleteReaderGroup("java");
        }
    }

    private static void useTable(Session session, ClientConfig config) throws Exception {
        KeyValueTableManager tables = session.closing(KeyValueTableManager.create(session.config()));
        KeyValueTableConfiguration shape = KeyValueTableConfiguration.builder().partitionCount(2)
                .primaryKeyLength(4).secondaryKeyLength(0).build();
        assertTrue(tables.createKeyValueTable(SCOPE, "table", shape), "the administrator creates a table");
        try (KeyValueTableFactory factory = KeyValueTableFactory.withScope(SCOPE, config);
                KeyValueTable table = factory.forKeyValueTable(
                        "table", KeyValueTableClientConfiguration.builder().build())) {
            TableKey key = new TableKey(UTF_8.encode("0001"));
            table.update(new Insert(key, UTF_8.encode("one"))).get();
            assertEquals("one", UTF_8.decode(table.get(key).get().getValue()).toString());
        }
        KeyValueTableManager users = session.closing(KeyValueTableManager.create(config));
        refused("PERMISSION_DENIED", () -> users.createKeyValueTable(SCOPE, "other", shape));
    }

    private static void begin(Session session, ClientConfig config) {
        EventStreamClientFactory factory = session.closing(EventStreamClientFactory.withScope(SCOPE, config));
        EventWriterConfig options = EventWriterConfig.builder().build();
        session.closing(factory.createTransactionalEventWriter("reader", STREAM, Events.TEXT, options)).beginTxn();
    }

    private static StreamManager streams(Session session, ClientConfig config) {
        return session.closing(StreamManager.create(config));
    }

    private static ClientConfig as(Session session, String user, String password) {
        return ClientConfig.builder().controllerURI(session.config().getControllerURI())
                .trustStore(FOLDER.resolve("ca.pem").toString())
                .credentials(new DefaultCredentials(password, user)).build();
    }

    private static String password(String user) throws Exception {
        return Files.readString(FOLDER.resolve(user + ".password"));
    }

    private interface OnName {
        void call(String name);
    }

    private static void refused(String status, OnName call, String name) {
        refused(status, () -> call.call(name));
    }

    private static void refused(String status, Executable call) {
        StringWriter text = new StringWriter();
        assertThrows(Exception.class, call, "it is refused with " + status).printStackTrace(new PrintWriter(text));
        assertTrue(text.toString().contains(status), "it is refused with " + status + ", not:\n" + text);
    }
}
