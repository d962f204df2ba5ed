package io.sluice.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.io.IOException;
import java.io.PrintStream;
import java.net.URI;

/**
 * Reads in a reader group together with clients of another language: prints {@code event E} for each event and
 * {@code checkpoint C} for each checkpoint, until a line comes or the end of data; then it leaves the group.
 *
 * <p>The arguments are the controller's URI, the scope, the group and the reader's id, and, for a reader that creates
 * the group, a stream.
 */
public final class ReaderPeer {
    private static final long POLL_MILLIS = 200;

    private ReaderPeer() {
    }

    public static void main(String[] arguments) throws IOException {
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(arguments[0])).build();
        String scope = arguments[1];
        PrintStream out = new PrintStream(System.out, true, UTF_8);
        if (arguments.length > 4) {
            try (ReaderGroupManager groups = ReaderGroupManager.withScope(scope, config)) {
                groups.createReaderGroup(arguments[2], Groups.config().stream(scope + "/" + arguments[4]).build());
            }
        }
        try (EventStreamClientFactory events = EventStreamClientFactory.withScope(scope, config);
                EventStreamReader<String> reader = events.createReader(
                        arguments[3], arguments[2], new UTF8StringSerializer(), ReaderConfig.builder().build())) {
            out.println("joined");
            EventRead<String> next = reader.readNextEvent(POLL_MILLIS);
            while (!next.isReadCompleted() && System.in.available() == 0) {
                if (next.isCheckpoint()) {
                    out.println("checkpoint " + next.getCheckpointName());
                } else if (next.getEvent() != null) {
                    out.println("event " + next.getEvent());
                }
                next = reader.readNextEvent(POLL_MILLIS);
            }
        }
        out.println("left");
        System.exit(0); // The client's threads would keep it a while.
    }
}
