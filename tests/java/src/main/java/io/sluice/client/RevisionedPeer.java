package io.sluice.client;

import io.pravega.client.ClientConfig;
import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.state.Revision;
import io.pravega.client.state.RevisionedStreamClient;
import io.pravega.client.state.SynchronizerConfig;
import io.pravega.client.stream.impl.ByteArraySerializer;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * Uses a revisioned stream together with a client of another language: prints the mark and every entry with its
 * revision, then appends an entry on condition and on none, and moves the mark behind the first of them.
 *
 * <p>The arguments are the controller's URI, the scope and the stream. Each line of the output is a word, a revision or
 * {@code null}, and for an entry its bytes in hexadecimal.
 */
public final class RevisionedPeer {
    private RevisionedPeer() {
    }

    public static void main(String[] arguments) {
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(arguments[0])).build();
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.US_ASCII);
        try (SynchronizerClientFactory factory = SynchronizerClientFactory.withScope(arguments[1], config);
                RevisionedStreamClient<byte[]> stream = factory.createRevisionedStreamClient(
                        arguments[2], new ByteArraySerializer(), SynchronizerConfig.builder().build())) {
            Revision mark = stream.getMark();
            out.println("mark " + mark);
            stream.readFrom(stream.fetchOldestRevision()).forEachRemaining(entry ->
                    out.println("entry " + entry.getKey() + " " + HexFormat.of().formatHex(entry.getValue())));
            Revision tail = stream.fetchLatestRevision();
            Revision after = stream.writeConditionally(tail, bytes("on condition"));
            out.println("appended " + after);
            out.println("appended " + stream.writeConditionally(tail, bytes("too late")));
            stream.writeUnconditionally(bytes("unconditionally"));
            out.println("marked " + (stream.compareAndSetMark(mark, after) ? after : null));
        }
        System.exit(0); // The client's threads would keep it a while.
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
