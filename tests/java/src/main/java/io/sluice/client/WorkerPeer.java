package io.sluice.client;

import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.CRC32;

/**
 * A worker beside those of {@code examples/at_least_once}: reads events in their reader group, writes each with its
 * text in capitals to another stream, and shows by heartbeats that it is there. It reports no dead ones.
 *
 * <p>The arguments are the controller's URI, the scope, the group, the worker's name, the stream of results, and the
 * milliseconds between two heartbeats. On SIGTERM it ends when its results are stored.
 */
public final class WorkerPeer {
    private static final long POLL_MILLIS = 200;
    private static final Pattern EVENT = Pattern.compile(
            "\\{\"source\":\"(.*)\",\"sequence\":(\\d+),\"key\":\"(.*)\",\"text\":\"(.*)\",\"checksum\":(\\d+)\\}");

    private static volatile boolean stopping;

    private WorkerPeer() {
    }

    public static void main(String[] arguments) {
        String scope = arguments[1];
        String name = arguments[3];
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(arguments[0])).build();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            stopping = true;
            try {
                main.join();
            } catch (InterruptedException impatient) {
                Thread.currentThread().interrupt();
            }
        }));
        ScheduledExecutorService heart = Executors.newSingleThreadScheduledExecutor();
        try (SynchronizerClientFactory synchronizers = SynchronizerClientFactory.withScope(scope, config);
                Members members = new Members(synchronizers, arguments[2] + "-members", name)) {
            long everyMillis = Long.parseLong(arguments[5]);
            heart.scheduleAtFixedRate(members::beat, 0, everyMillis, TimeUnit.MILLISECONDS);
            try (EventStreamClientFactory events = EventStreamClientFactory.withScope(scope, config);
                    EventStreamWriter<String> writer = events.createEventWriter(
                            arguments[4], Events.TEXT, EventWriterConfig.builder().build());
                    EventStreamReader<String> reader = events.createReader(
                            name, arguments[2], Events.TEXT, ReaderConfig.builder().build())) {
                out.println(name + " is online");
                out.println(name + ": " + work(reader, writer) + " events");
            }
            heart.shutdownNow();
        }
        Runtime.getRuntime().halt(0); // The client's threads would keep it a while; and after SIGTERM it is 143.
    }

    /** How many events it processed until it was stopped. */
    private static int work(EventStreamReader<String> reader, EventStreamWriter<String> writer) {
        int done = 0;
        while (!stopping) {
            EventRead<String> next = reader.readNextEvent(POLL_MILLIS);
            if (next.isCheckpoint()) {
                writer.flush(); // The next call says that all before is done.
            } else if (next.getEvent() != null) {
                Matcher event = EVENT.matcher(next.getEvent());
                if (!event.matches()) {
                    throw new IllegalArgumentException(next.getEvent());
                }
                writer.writeEvent(event.group(3), capitals(event));
                done++;
            }
        }
        writer.flush();
        return done;
    }

    private static String capitals(Matcher event) {
        String text = event.group(4).toUpperCase(Locale.ROOT);
        String summed = String.join("\0", event.group(1), event.group(2), event.group(3), text);
        CRC32 checksum = new CRC32();
        checksum.update(summed.getBytes(StandardCharsets.UTF_8));
        return String.format("{\"source\":\"%s\",\"sequence\":%s,\"key\":\"%s\",\"text\":\"%s\",\"checksum\":%d}",
                event.group(1), event.group(2), event.group(3), text, checksum.getValue());
    }
}
