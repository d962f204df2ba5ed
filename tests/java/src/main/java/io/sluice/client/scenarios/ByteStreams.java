package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.ByteStreamClientFactory;
import io.pravega.client.byteStream.ByteStreamReader;
import io.pravega.client.byteStream.ByteStreamWriter;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.util.Random;

/** A stream of bytes is written, read, read from an offset, truncated and sealed. */
public final class ByteStreams implements Scenario {
    private static final int LENGTH = 100_000;
    private static final int MIDDLE = 60_000;

    @Override
    public void run(Session session) throws Exception {
        session.stream("bytes", 1);
        ByteStreamClientFactory factory =
                session.closing(ByteStreamClientFactory.withScope(session.scope(), session.config()));
        byte[] written = new byte[LENGTH];
        new Random(1).nextBytes(written);
        try (ByteStreamWriter writer = factory.createByteStreamWriter("bytes")) {
            writer.write(written);
            writer.flush();
            assertEquals(LENGTH, writer.fetchTailOffset(), "tail");
            try (ByteStreamReader reader = factory.createByteStreamReader("bytes")) {
                byte[] read = new byte[LENGTH];
                assertEquals(LENGTH, reader.readNBytes(read, 0, LENGTH), "bytes read");
                assertArrayEquals(written, read, "what was read");
                reader.seekToOffset(MIDDLE);
                assertEquals(written[MIDDLE], (byte) reader.read(), "the byte in the middle");
                writer.truncateDataBefore(MIDDLE);
                assertEquals(MIDDLE, reader.fetchHeadOffset(), "head");
            }
            writer.closeAndSeal();
        }
        try (ByteStreamReader reader = factory.createByteStreamReader("bytes")) {
            reader.seekToOffset(LENGTH);
            assertEquals(-1, reader.read(), "what comes after the end of a sealed stream");
        }
        assertTrue(session.streams().sealStream(session.scope(), "bytes"), "the stream is sealed");
        assertTrue(session.streams().deleteStream(session.scope(), "bytes"), "the stream is deleted");
    }
}
