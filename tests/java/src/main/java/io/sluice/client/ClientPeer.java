package io.sluice.client;

import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.TxnFailedException;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Writes events, commits transactions of two events and reads it all, each as fast as it goes, until a line comes on
 * the input; then it reads to the end of the stream. The arguments are the controller's URI, the scope and the stream.
 *
 * <p>What is acknowledged or read is printed: {@code wrote NUMBER}, {@code committed NUMBER}, {@code read EVENT}. The
 * events are {@code wrote/NUMBER} and {@code committed/NUMBER}. When no more is written it prints {@code ended}.
 */
public final class ClientPeer {
    private static final String WROTE = "wrote";
    private static final String COMMITTED = "committed";
    private static final long POLL_MILLIS = 100;

    private final EventStreamClientFactory events;
    private final String stream;
    private final AtomicBoolean stopped = new AtomicBoolean();
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);

    private ClientPeer(ClientConfig config, String scope, String stream) {
        events = EventStreamClientFactory.withScope(scope, config);
        this.stream = stream;
    }

    public static void main(String[] arguments) throws IOException {
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(arguments[0])).build();
        try (ReaderGroupManager groups = ReaderGroupManager.withScope(arguments[1], config)) {
            groups.createReaderGroup("rg", Groups.config().stream(arguments[1] + "/" + arguments[2]).build());
        }
        ClientPeer peer = new ClientPeer(config, arguments[1], arguments[2]);
        ExecutorService threads = Executors.newCachedThreadPool();
        CompletableFuture<Void> reading = CompletableFuture.runAsync(peer::read, threads);
        CompletableFuture<Void> writing = CompletableFuture.allOf(
                CompletableFuture.runAsync(peer::write, threads), CompletableFuture.runAsync(peer::commit, threads));
        System.in.read();
        peer.stopped.set(true);
        writing.join();
        peer.out.println("ended");
        reading.join();
        System.exit(0); // The client's threads would keep it a while.
    }

    private void write() {
        EventWriterConfig config = EventWriterConfig.builder().build();
        try (EventStreamWriter<String> writer = events.createEventWriter(stream, Events.TEXT, config)) {
            for (int number = 0; !stopped.get(); number++) {
                writer.writeEvent(Events.routingKey(number), WROTE + "/" + number).join();
                out.println(WROTE + " " + number);
            }
        }
    }

    private void commit() {
        EventWriterConfig config = EventWriterConfig.builder().build();
        try (TransactionalEventStreamWriter<String> writer =
                events.createTransactionalEventWriter("committer", stream, Events.TEXT, config)) {
            for (int number = 0; !stopped.get(); number += 2) {
                Transaction<String> transaction = writer.beginTxn();
                transaction.writeEvent(Events.routingKey(number), COMMITTED + "/" + number);
                transaction.writeEvent(Events.routingKey(number + 1), COMMITTED + "/" + (number + 1));
                transaction.commit();
                out.println(COMMITTED + " " + number);
                out.println(COMMITTED + " " + (number + 1));
            }
        } catch (TxnFailedException failure) {
            throw new IllegalStateException(failure);
        }
    }

    private void read() {
        try (EventStreamReader<String> reader =
                events.createReader("reader", "rg", Events.TEXT, ReaderConfig.builder().build())) {
            for (EventRead<String> next = reader.readNextEvent(POLL_MILLIS);
                    !next.isReadCompleted();
                    next = reader.readNextEvent(POLL_MILLIS)) {
                if (next.getEvent() != null) {
                    out.println("read " + next.getEvent());
                }
            }
        }
    }
}
