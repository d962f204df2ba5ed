package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.Stream;
import io.sluice.client.Deadline;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scaling;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/** A stream grows and shrinks while it is written and read: nothing is lost, and each key stays in order. */
public final class ScalingWhileWriting implements Scenario {
    private static final int BURST = 20;

    @Override
    public void run(Session session) throws Exception {
        Stream stream = session.stream("st", 1);
        Groups.create(session, "rg", "st");
        EventStreamWriter<String> writer = Events.writer(session, "st");
        AtomicBoolean scaled = new AtomicBoolean();
        AtomicInteger written = new AtomicInteger();
        CompletableFuture<Void> writing = CompletableFuture.runAsync(() -> {
            while (!scaled.get()) {
                Events.write(writer, written.get(), written.get() + BURST);
                written.addAndGet(BURST);
            }
        }, session.threads());
        CompletableFuture<List<String>> reading =
                CompletableFuture.supplyAsync(() -> readAll(session), session.threads());
        try (Scaling scaling = new Scaling(session)) {
            for (int segments : List.of(3, 2, 4)) {
                awaitMore(written, writing);
                scaling.scaleTo(stream, segments);
                assertEquals(segments, scaling.segmentsOf(stream).size(), "current segments");
            }
            awaitMore(written, writing);
        } finally {
            scaled.set(true);
        }
        writing.join();
        session.streams().sealStream(session.scope(), "st");
        List<String> events = reading.join();
        Events.checkExactlyOnce(events, 0, written.get());
        Events.checkOrder(events);
    }

    private static void awaitMore(AtomicInteger written, CompletableFuture<Void> writing) {
        int before = written.get();
        Deadline.in(Duration.ofSeconds(60)).await(() -> writing.isDone() || written.get() >= before + 3 * BURST,
                "writing goes on after " + before + " events");
    }

    private static List<String> readAll(Session session) {
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            return reader.readToEnd();
        }
    }
}
