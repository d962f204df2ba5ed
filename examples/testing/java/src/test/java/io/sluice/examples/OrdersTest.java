package io.sluice.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** An unmodified client of Pravega writes and reads; one container serves all tests of the class. */
class OrdersTest {
    private static final long READ_MILLIS = 60_000;
    private static final SluiceDev SLUICE = new SluiceDev("--stream demo/orders:2");

    @BeforeAll
    static void start() {
        SLUICE.start();
    }

    @AfterAll
    static void stop() {
        SLUICE.stop();
    }

    @Test
    void anOrderIsRead() throws Exception {
        ClientConfig config = ClientConfig.builder().controllerURI(SLUICE.controller()).build();
        UTF8StringSerializer text = new UTF8StringSerializer();
        ReaderGroupConfig all = ReaderGroupConfig.builder().stream("demo/orders").build();
        try (ReaderGroupManager groups = ReaderGroupManager.withScope("demo", config);
                EventStreamClientFactory events = EventStreamClientFactory.withScope("demo", config)) {
            groups.createReaderGroup("shop", all);
            try (EventStreamWriter<String> writer =
                    events.createEventWriter("orders", text, EventWriterConfig.builder().build())) {
                writer.writeEvent("a customer", "tea").join();
            }
            try (EventStreamReader<String> reader =
                    events.createReader("reader", "shop", text, ReaderConfig.builder().build())) {
                assertEquals("tea", reader.readNextEvent(READ_MILLIS).getEvent());
            }
        }
    }
}
