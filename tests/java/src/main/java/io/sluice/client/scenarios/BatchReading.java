package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.BatchClientFactory;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.batch.StreamSegmentsIterator;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.sluice.client.Events;
import io.sluice.client.Scaling;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

/** A batch job asks for the segments of a stream, of all of it and between two cuts, and reads them one by one. */
public final class BatchReading implements Scenario {
    @Override
    public void run(Session session) throws Exception {
        Stream stream = session.stream("st", 2);
        EventStreamWriter<String> writer = Events.writer(session, "st");
        Events.write(writer, 0, 100);
        StreamCut from = tail(session);
        Events.write(writer, 100, 200);
        try (Scaling scaling = new Scaling(session)) {
            scaling.scaleTo(stream, 3);
        }
        Events.write(writer, 200, 300);
        StreamCut to = tail(session);
        Events.write(writer, 300, 400);

        BatchClientFactory batches = session.closing(BatchClientFactory.withScope(session.scope(), session.config()));
        read(batches, batches.getSegments(stream, StreamCut.UNBOUNDED, StreamCut.UNBOUNDED), 0, 400);
        read(batches, batches.getSegments(stream, from, to), 100, 300);
    }

    private static void read(BatchClientFactory batches, StreamSegmentsIterator segments, int first, int end) {
        List<String> events = new ArrayList<>();
        Set<Long> ids = new HashSet<>();
        for (Iterator<SegmentRange> ranges = segments.getIterator(); ranges.hasNext();) {
            SegmentRange range = ranges.next();
            ids.add(range.getSegmentId());
            try (SegmentIterator<String> iterator = batches.readSegment(range, Events.TEXT)) {
                iterator.forEachRemaining(events::add);
            }
        }
        assertEquals(2 + 3, ids.size(), "segments of both epochs: " + ids);
        Events.checkExactlyOnce(events, first, end);
    }

    private static StreamCut tail(Session session) throws Exception {
        return session.streams().fetchStreamInfo(session.scope(), "st").get().getTailStreamCut();
    }
}
