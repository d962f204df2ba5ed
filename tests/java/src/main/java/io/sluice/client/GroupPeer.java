package io.sluice.client;

import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.Checkpoint;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ReinitializationRequiredException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32;

/**
 * Takes part in a reader group together with a client of another language. The arguments are the controller's URI, the
 * scope and the group. Each line of the input is a command, and each command has one line as its reply.
 *
 * <p>Readers read by themselves; each event is printed as {@code event READER EVENT}, a large one by its length and
 * checksum, and {@code out READER} when one learns that the group was reset. Events may come between a command and its
 * reply.
 */
public final class GroupPeer {
    private static final long POLL_MILLIS = 100;
    private static final long DEADLINE_S = 60;
    private static final int LARGE = 1000;

    private final EventStreamClientFactory events;
    private final ReaderGroupManager groups;
    private final String name;
    private final PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);
    private final ScheduledExecutorService threads = Executors.newScheduledThreadPool(8);

    private GroupPeer(ClientConfig config, String scope, String name) {
        events = EventStreamClientFactory.withScope(scope, config);
        groups = ReaderGroupManager.withScope(scope, config);
        this.name = name;
    }

    public static void main(String[] arguments) {
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(arguments[0])).build();
        GroupPeer peer = new GroupPeer(config, arguments[1], arguments[2]);
        if (arguments.length > 3) {
            if (arguments.length > 4) {
                String stream = arguments[1] + "/" + arguments[4];
                peer.groups.createReaderGroup(arguments[2], Groups.config().stream(stream).build());
            }
            peer.readToEnd(arguments[3]);
            System.exit(0);
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        try {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                peer.out.println("reply " + peer.obey(line.split(" ")));
            }
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
        System.exit(0); // The client's threads would keep it a while.
    }

    private void readToEnd(String id) {
        try (EventStreamReader<String> reader =
                events.createReader(id, name, Events.TEXT, ReaderConfig.builder().build())) {
            out.println("joined");
            for (EventRead<String> next = reader.readNextEvent(POLL_MILLIS);
                    !next.isReadCompleted();
                    next = reader.readNextEvent(POLL_MILLIS)) {
                if (next.isCheckpoint()) {
                    out.println("checkpoint " + next.getCheckpointName());
                } else if (next.getEvent() != null) {
                    out.println("event " + next.getEvent());
                }
            }
        }
        out.println("left");
    }

    private String obey(String[] words) throws Exception {
        switch (words[0]) {
            case "reader":
                EventStreamReader<String> reader =
                        events.createReader(words[1], name, Events.TEXT, ReaderConfig.builder().build());
                threads.execute(() -> readOn(words[1], reader));
                return "reads";
            case "write":
                EventWriterConfig large = EventWriterConfig.builder().enableLargeEvents(true).build();
                try (EventStreamWriter<String> writer = events.createEventWriter(words[1], Events.TEXT, large)) {
                    writer.writeEvent(words[2].repeat(Integer.parseInt(words[3]))).get(DEADLINE_S, TimeUnit.SECONDS);
                }
                return "written";
            case "checkpoint":
                return inGroup(group -> {
                    Checkpoint checkpoint =
                            group.initiateCheckpoint(words[1], threads).get(DEADLINE_S, TimeUnit.SECONDS);
                    return HexFormat.of().formatHex(checkpoint.toBytes().array());
                });
            case "reset":
                Checkpoint checkpoint = Checkpoint.fromBytes(ByteBuffer.wrap(HexFormat.of().parseHex(words[1])));
                return inGroup(group -> {
                    group.resetReaderGroup(ReaderGroupConfig.builder().disableAutomaticCheckpoints()
                            .groupRefreshTimeMillis(500).startFromCheckpoint(checkpoint).build());
                    return checkpoint.getName();
                });
            case "unread":
                return inGroup(group -> String.valueOf(group.getMetrics().unreadBytes()));
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private void readOn(String reader, EventStreamReader<String> source) {
        try {
            while (true) {
                String event = source.readNextEvent(POLL_MILLIS).getEvent();
                if (event != null) {
                    out.println("event " + reader + " " + (event.length() > LARGE ? summary(event) : event));
                }
            }
        } catch (ReinitializationRequiredException reset) {
            out.println("out " + reader);
        }
    }

    private static String summary(String event) {
        CRC32 checksum = new CRC32();
        checksum.update(event.getBytes(StandardCharsets.UTF_8));
        return event.length() + ":" + checksum.getValue();
    }

    private String inGroup(Use use) throws Exception {
        try (ReaderGroup group = groups.getReaderGroup(name)) {
            return use.of(group);
        }
    }

    private interface Use {
        String of(ReaderGroup group) throws Exception;
    }
}
