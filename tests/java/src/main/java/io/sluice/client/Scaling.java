package io.sluice.client;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.control.impl.ControllerImpl;
import io.pravega.client.control.impl.ControllerImplConfig;
import io.pravega.client.segment.impl.Segment;
import io.pravega.client.stream.Stream;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/** Scales streams by hand, through the client's own access to the controller. */
public final class Scaling implements AutoCloseable {
    private static final long DEADLINE_SECONDS = 60;

    private final ScheduledExecutorService threads;
    private final ControllerImpl controller;

    public Scaling(Session session) {
        threads = session.threads();
        ControllerImplConfig config = ControllerImplConfig.builder().clientConfig(session.config()).build();
        controller = new ControllerImpl(config, threads);
    }

    /** Replaces all segments of a stream by so many; returns when it is done. */
    public void scaleTo(Stream stream, int segments) throws Exception {
        assertTrue(tryScaleTo(stream, segments), "scaling of " + stream + " to " + segments + " segments");
    }

    /** The same; says no if the segments were replaced by others meanwhile, as a rolling transaction does. */
    public boolean tryScaleTo(Stream stream, int segments) throws Exception {
        Map<Double, Double> ranges = new HashMap<>();
        for (int index = 0; index < segments; index++) {
            ranges.put((double) index / segments, (double) (index + 1) / segments);
        }
        return controller.scaleStream(stream, segmentsOf(stream), ranges, threads).getFuture()
                .get(DEADLINE_SECONDS, TimeUnit.SECONDS);
    }

    /** The ids of the current segments. */
    public List<Long> segmentsOf(Stream stream) throws Exception {
        return controller.getCurrentSegments(stream.getScope(), stream.getStreamName())
                .get(DEADLINE_SECONDS, TimeUnit.SECONDS)
                .getSegments().stream().map(Segment::getSegmentId).sorted().toList();
    }

    @Override
    public void close() {
        controller.close();
    }
}
