package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.stream.Stream;
import io.pravega.client.stream.TimeWindow;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.sluice.client.Deadline;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import io.sluice.client.Transactions;
import java.time.Duration;

/** Commits that say a time are as good as a writer that notes it: a reader learns between which times it reads. */
public final class TransactionalWatermarks implements Scenario {
    private static final long FIRST_TIME = 1_000;
    private static final Duration DEADLINE = Duration.ofSeconds(90);

    @Override
    public void run(Session session) throws Exception {
        Stream stream = session.stream("st", 2);
        TransactionalEventStreamWriter<String> writer = Transactions.writer(session, "writer", "st");
        Groups.create(session, "rg", "st");
        long time = FIRST_TIME;
        TimeWindow window = new TimeWindow(null, null);
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            Deadline deadline = Deadline.in(DEADLINE);
            while (window.getLowerTimeBound() == null) {
                deadline.check("the reader has a lower time bound; commits have said times up to " + time);
                Transactions.begin(writer, (int) time, (int) time + 1).commit(++time);
                reader.poll();
                window = reader.timeWindow(stream);
            }
        }
        assertTrue(FIRST_TIME < window.getLowerTimeBound() && window.getLowerTimeBound() <= time,
                "the lower bound is a time that a commit said: " + window + ", up to " + time);
    }
}
