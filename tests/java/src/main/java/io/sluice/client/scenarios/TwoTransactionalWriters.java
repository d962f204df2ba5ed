package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import io.sluice.client.Transactions;
import java.util.List;
import java.util.stream.IntStream;

/** Two writers have transactions open at once: each is read as a whole, in the order in which they were committed. */
public final class TwoTransactionalWriters implements Scenario {
    private static final int EVENTS = 30;

    @Override
    public void run(Session session) throws Exception {
        session.stream("st", 1);
        TransactionalEventStreamWriter<String> first = Transactions.writer(session, "first", "st");
        TransactionalEventStreamWriter<String> second = Transactions.writer(session, "second", "st");
        Transaction<String> late = Transactions.begin(first, EVENTS, 2 * EVENTS);
        Transaction<String> early = Transactions.begin(second, 0, EVENTS);
        Transaction<String> never = Transactions.begin(second, 2 * EVENTS, 3 * EVENTS);
        early.commit();
        late.commit();
        never.abort();
        Transactions.await(late, Transaction.Status.COMMITTED);
        Transactions.await(never, Transaction.Status.ABORTED);
        assertEquals(Transaction.Status.COMMITTED, early.checkStatus(), "the one that was committed first");
        Groups.create(session, "rg", "st");
        session.streams().sealStream(session.scope(), "st");
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            List<String> expected = IntStream.range(0, 2 * EVENTS).mapToObj(Integer::toString).toList();
            assertEquals(expected, reader.readToEnd(), "events in the order of the commits");
        }
    }
}
