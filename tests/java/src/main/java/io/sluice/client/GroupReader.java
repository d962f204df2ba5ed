package io.sluice.client;

import io.pravega.client.stream.Checkpoint;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReinitializationRequiredException;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.TimeWindow;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;

/** A reader of a reader group. It waits for what comes next until its deadline. Belongs to one thread at a time. */
public final class GroupReader implements AutoCloseable {
    private static final Duration DEADLINE = Duration.ofSeconds(60);
    private static final long POLL_MILLIS = 100;

    private final EventStreamReader<String> reader;
    private final ScheduledExecutorService threads;

    public GroupReader(Session session, String group, String name) {
        ReaderConfig config = ReaderConfig.builder().build();
        threads = session.threads();
        reader = session.events().createReader(name, group, Events.TEXT, config);
    }

    /** The next event, or null if there was none in a moment. */
    public String poll() {
        return next().getEvent();
    }

    /** Reads so many events. */
    public List<String> read(int count) {
        List<String> events = new ArrayList<>();
        while (events.size() < count) {
            events.add(awaited(count + " events are read; " + events.size() + " were"));
        }
        return events;
    }

    /** Reads until the group has seen all that there is in its sealed streams. */
    public List<String> readToEnd() {
        Deadline deadline = Deadline.in(DEADLINE);
        List<String> events = new ArrayList<>();
        for (EventRead<String> next = next(); !next.isReadCompleted(); next = next()) {
            deadline.check("the end is read; " + events.size() + " events were");
            if (next.getEvent() != null) {
                events.add(next.getEvent());
                deadline = Deadline.in(DEADLINE);
            }
        }
        return events;
    }

    /** Has the group take a checkpoint; adds the events that are read up to it. */
    public Checkpoint checkpoint(ReaderGroup group, String name, List<String> events) {
        Deadline deadline = Deadline.in(DEADLINE);
        CompletableFuture<Checkpoint> checkpoint = group.initiateCheckpoint(name, threads);
        while (!checkpoint.isDone()) {
            deadline.check("the checkpoint is complete");
            add(events, poll());
        }
        return checkpoint.join();
    }

    /** Reads on until the reader is told that its group was reset; it is of no use then. */
    public void readUntilReset() {
        Deadline deadline = Deadline.in(DEADLINE);
        try {
            while (true) {
                deadline.check("the reader sees that its group was reset");
                poll();
            }
        } catch (ReinitializationRequiredException reset) {
            reader.close();
        }
    }

    public TimeWindow timeWindow(Stream stream) {
        return reader.getCurrentTimeWindow(stream);
    }

    private String awaited(String what) {
        Deadline deadline = Deadline.in(DEADLINE);
        String event = poll();
        while (event == null) {
            deadline.check(what);
            event = poll();
        }
        return event;
    }

    private EventRead<String> next() {
        return reader.readNextEvent(POLL_MILLIS);
    }

    private static void add(List<String> events, String event) {
        if (event != null) {
            events.add(event);
        }
    }

    @Override
    public void close() {
        reader.close();
    }
}
