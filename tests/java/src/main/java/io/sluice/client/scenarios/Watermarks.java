package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.TimeWindow;
import io.sluice.client.Deadline;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.time.Duration;

/** A writer notes times as it writes; a reader learns between which times the events lie that it reads. */
public final class Watermarks implements Scenario {
    private static final long FIRST_TIME = 1_000;
    private static final Duration DEADLINE = Duration.ofSeconds(90);

    @Override
    public void run(Session session) {
        Stream stream = session.stream("st", 2);
        EventStreamWriter<String> writer = Events.writer(session, "st");
        Groups.create(session, "rg", "st");
        long time = FIRST_TIME;
        TimeWindow window = new TimeWindow(null, null);
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            Deadline deadline = Deadline.in(DEADLINE);
            while (window.getLowerTimeBound() == null) {
                deadline.check("the reader has a lower time bound; the writer has noted times up to " + time);
                Events.write(writer, (int) time, (int) time + 1);
                writer.noteTime(++time);
                reader.poll();
                window = reader.timeWindow(stream);
            }
        }
        assertTrue(FIRST_TIME < window.getLowerTimeBound() && window.getLowerTimeBound() <= time,
                "the lower bound is a time that was noted: " + window + ", noted up to " + time);
        assertTrue(window.getUpperTimeBound() == null || window.getUpperTimeBound() >= window.getLowerTimeBound(),
                "the upper bound is not below the lower one: " + window);
    }
}
