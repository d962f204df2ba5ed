package io.sluice.client;

import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.TxnFailedException;
import java.time.Duration;

/** Transactions that hold numbered events, as {@link Events} are. */
public final class Transactions {
    private static final Duration DEADLINE = Duration.ofSeconds(60);

    private Transactions() {
    }

    /** Opens a transactional writer that is closed with the session. */
    public static TransactionalEventStreamWriter<String> writer(Session session, String name, String stream) {
        EventWriterConfig config = EventWriterConfig.builder().build();
        return session.closing(session.events().createTransactionalEventWriter(name, stream, Events.TEXT, config));
    }

    /** Begins a transaction with the events from {@code first} up to and without {@code end}; all are stored then. */
    public static Transaction<String> begin(TransactionalEventStreamWriter<String> writer, int first, int end)
            throws TxnFailedException {
        Transaction<String> transaction = writer.beginTxn();
        for (int number = first; number < end; number++) {
            transaction.writeEvent(Events.routingKey(number), Integer.toString(number));
        }
        transaction.flush();
        return transaction;
    }

    /** Waits until a transaction has ended so. */
    public static void await(Transaction<String> transaction, Transaction.Status status) {
        Deadline.in(DEADLINE).await(() -> transaction.checkStatus() == status,
                transaction.getTxnId() + " is " + status);
    }
}
