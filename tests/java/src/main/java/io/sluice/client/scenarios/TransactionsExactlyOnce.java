package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.stream.Stream;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.TxnFailedException;
import io.sluice.client.Deadline;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scaling;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import io.sluice.client.Transactions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** Four writers commit transactions while the stream is scaled; every fifth is aborted and written again. */
public final class TransactionsExactlyOnce implements Scenario {
    private static final int WRITERS = 4;
    private static final int TRANSACTIONS = 40;
    private static final int EVENTS = 5;
    private static final int ABORTED_EVERY = 5;
    private static final int SCALED_EVERY = 40;
    private static final Duration DEADLINE = Duration.ofSeconds(120);

    @Override
    public void run(Session session) throws Exception {
        Stream stream = session.stream("st", 2);
        Groups.create(session, "rg", "st");
        AtomicInteger committed = new AtomicInteger();
        ExecutorService threads = Executors.newFixedThreadPool(WRITERS);
        session.closing(threads::shutdownNow);
        List<CompletableFuture<Void>> writing = new ArrayList<>();
        for (int number = 0; number < WRITERS; number++) {
            TransactionalEventStreamWriter<String> writer = Transactions.writer(session, "writer-" + number, "st");
            int first = number * TRANSACTIONS * EVENTS;
            writing.add(CompletableFuture.runAsync(() -> write(writer, first, committed), threads));
        }
        CompletableFuture<Void> written = CompletableFuture.allOf(writing.toArray(CompletableFuture[]::new));
        try (Scaling scaling = new Scaling(session)) {
            for (int goal = SCALED_EVERY; goal < WRITERS * TRANSACTIONS; goal += SCALED_EVERY) {
                int reached = goal;
                Deadline deadline = Deadline.in(DEADLINE);
                deadline.await(() -> written.isDone() || committed.get() >= reached, reached + " are committed");
                while (!scaling.tryScaleTo(stream, 2 + goal / SCALED_EVERY % 2)) {
                    deadline.check("the stream is scaled after " + reached);
                }
            }
        }
        written.join();
        assertEquals(WRITERS * TRANSACTIONS, committed.get(), "committed transactions");
        session.streams().sealStream(session.scope(), "st");
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            Events.checkExactlyOnce(reader.readToEnd(), 0, WRITERS * TRANSACTIONS * EVENTS);
        }
    }

    private static void write(TransactionalEventStreamWriter<String> writer, int first, AtomicInteger committed) {
        try {
            Transaction<String> last = null;
            for (int number = 0; number < TRANSACTIONS; number++) {
                int event = first + number * EVENTS;
                if (number % ABORTED_EVERY == 0) {
                    Transactions.begin(writer, event, event + EVENTS).abort();
                }
                Transaction<String> transaction = Transactions.begin(writer, event, event + EVENTS);
                transaction.commit();
                committed.incrementAndGet();
                last = transaction;
            }
            Transactions.await(last, Transaction.Status.COMMITTED);
        } catch (TxnFailedException failure) {
            throw new IllegalStateException(failure);
        }
    }
}
