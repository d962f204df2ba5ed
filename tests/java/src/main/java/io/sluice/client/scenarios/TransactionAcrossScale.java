package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scaling;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import io.sluice.client.Transactions;
import java.util.List;

/** A transaction that was begun before a scale is committed after it, while others write on. */
public final class TransactionAcrossScale implements Scenario {
    private static final int EVENTS = 40;

    @Override
    public void run(Session session) throws Exception {
        Stream stream = session.stream("st", 2);
        Groups.create(session, "rg", "st");
        EventStreamWriter<String> plain = Events.writer(session, "st");
        TransactionalEventStreamWriter<String> writer = Transactions.writer(session, "writer", "st");
        try (Scaling scaling = new Scaling(session)) {
            Events.write(plain, 0, EVENTS);
            Transaction<String> old = Transactions.begin(writer, 2 * EVENTS, 3 * EVENTS);
            scaling.scaleTo(stream, 3);
            Events.write(plain, EVENTS, 2 * EVENTS);
            Transaction<String> young = Transactions.begin(writer, 3 * EVENTS, 4 * EVENTS);
            old.commit();
            young.commit();
            Transactions.await(old, Transaction.Status.COMMITTED);
            Transactions.await(young, Transaction.Status.COMMITTED);
            Events.write(plain, 4 * EVENTS, 5 * EVENTS);
            List<Long> epochs = scaling.segmentsOf(stream).stream().map(segment -> segment >> 32).distinct().toList();
            assertEquals(List.of(3L), epochs, "epochs of the current segments: a scale, then two for the old one");
        }
        session.streams().sealStream(session.scope(), "st");
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            List<String> events = reader.readToEnd();
            Events.checkExactlyOnce(events, 0, 5 * EVENTS);
            Events.checkOrder(events);
        }
    }
}
