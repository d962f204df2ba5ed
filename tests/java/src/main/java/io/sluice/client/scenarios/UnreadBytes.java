package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.Stream;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.util.ArrayList;
import java.util.List;

/** A group says how many bytes it has not read yet, counted from its last checkpoint. */
public final class UnreadBytes implements Scenario {
    private static final int FIRST = 100;
    private static final int END = 400;
    /** Each event has three digits and the eight bytes before every event: what it is, and its length. */
    private static final int EVENT_BYTES = 3 + 8;

    @Override
    public void run(Session session) {
        Stream stream = session.stream("st", 2);
        EventStreamWriter<String> writer = Events.writer(session, "st");
        Events.write(writer, FIRST, END);
        ReaderGroup group =
                Groups.create(session, "rg", Groups.configWithoutCheckpoints().stream(stream).build());
        assertEquals((END - FIRST) * EVENT_BYTES, group.getMetrics().unreadBytes(), "before the first reader");
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            List<String> read = new ArrayList<>(reader.read(END - FIRST));
            reader.checkpoint(group, "all", read);
            assertEquals(0, group.getMetrics().unreadBytes(), "after a checkpoint at the end");
            Events.write(writer, FIRST, FIRST + 10);
            assertEquals(10 * EVENT_BYTES, group.getMetrics().unreadBytes(), "after more was written");
        }
    }
}
