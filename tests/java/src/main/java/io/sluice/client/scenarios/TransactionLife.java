package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.pravega.client.control.impl.ControllerImpl;
import io.pravega.client.control.impl.ControllerImplConfig;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionInfo;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.TxnFailedException;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import io.sluice.client.Transactions;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** One transaction is pinged and committed, another one aborted; both tell how they ended. */
public final class TransactionLife implements Scenario {
    private static final int EVENTS = 20;
    private static final long LEASE_MILLIS = 30_000;
    private static final long DEADLINE_SECONDS = 60;

    @Override
    public void run(Session session) throws Exception {
        Stream stream = session.stream("st", 2);
        TransactionalEventStreamWriter<String> writer = Transactions.writer(session, "writer", "st");
        ControllerImplConfig config = ControllerImplConfig.builder().clientConfig(session.config()).build();
        ControllerImpl controller = session.closing(new ControllerImpl(config, session.threads()));

        Transaction<String> kept = Transactions.begin(writer, 0, EVENTS);
        assertEquals(Transaction.Status.OPEN, kept.checkStatus(), "status while it is open");
        assertEquals(Transaction.PingStatus.OPEN, ping(controller, stream, kept.getTxnId()), "ping while it is open");
        Transaction<String> resumed = writer.getTxn(kept.getTxnId());
        resumed.writeEvent(Events.routingKey(EVENTS), Integer.toString(EVENTS));
        resumed.flush();
        kept.commit();
        Transactions.await(kept, Transaction.Status.COMMITTED);
        assertEquals(Transaction.PingStatus.COMMITTED, ping(controller, stream, kept.getTxnId()), "ping after commit");
        assertThrows(TxnFailedException.class, () -> kept.writeEvent("late"), "writing after commit");

        Transaction<String> dropped = Transactions.begin(writer, EVENTS + 1, 2 * EVENTS);
        dropped.abort();
        Transactions.await(dropped, Transaction.Status.ABORTED);
        assertEquals(Transaction.PingStatus.ABORTED, ping(controller, stream, dropped.getTxnId()), "ping after abort");

        assertEquals(Set.of(kept.getTxnId(), dropped.getTxnId()),
                controller.listCompletedTransactions(stream).get(DEADLINE_SECONDS, TimeUnit.SECONDS).stream()
                        .map(TransactionInfo::getTransactionId).collect(Collectors.toSet()), "completed transactions");
        Groups.create(session, "rg", "st");
        session.streams().sealStream(session.scope(), "st");
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            List<String> events = reader.readToEnd();
            Events.checkExactlyOnce(events, 0, EVENTS + 1);
            Events.checkOrder(events);
        }
    }

    private static Transaction.PingStatus ping(ControllerImpl controller, Stream stream, UUID transaction)
            throws Exception {
        return controller.pingTransaction(stream, transaction, LEASE_MILLIS).get(DEADLINE_SECONDS, TimeUnit.SECONDS);
    }
}
