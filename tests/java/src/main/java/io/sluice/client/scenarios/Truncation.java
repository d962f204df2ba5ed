package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.admin.StreamInfo;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scaling;
import io.sluice.client.Scenario;
import io.sluice.client.Session;

/** A stream is truncated, within an epoch and across one: its head moves and reading begins there. */
public final class Truncation implements Scenario {
    @Override
    public void run(Session session) throws Exception {
        Stream stream = session.stream("st", 2);
        EventStreamWriter<String> writer = Events.writer(session, "st");
        assertEquals(positions(info(session).getHeadStreamCut()), positions(info(session).getTailStreamCut()),
                "head and tail of an empty stream");
        Events.write(writer, 0, 100);
        StreamCut first = info(session).getTailStreamCut();
        assertNotEquals(positions(info(session).getHeadStreamCut()), positions(first), "the tail after writing");
        Events.write(writer, 100, 200);
        truncateAndRead(session, first, "rg-1", 100, 200);

        try (Scaling scaling = new Scaling(session)) {
            scaling.scaleTo(stream, 3);
        }
        Events.write(writer, 200, 300);
        StreamCut second = info(session).getTailStreamCut();
        Events.write(writer, 300, 400);
        truncateAndRead(session, second, "rg-2", 300, 400);
    }

    private static void truncateAndRead(Session session, StreamCut cut, String group, int first, int end)
            throws Exception {
        assertTrue(session.streams().truncateStream(session.scope(), "st", cut), "the stream is truncated");
        assertEquals(positions(cut), positions(info(session).getHeadStreamCut()), "the head is where it was cut");
        Groups.create(session, group, "st");
        try (GroupReader reader = new GroupReader(session, group, "reader-1")) {
            Events.checkExactlyOnce(reader.read(end - first), first, end);
        }
    }

    private static StreamInfo info(Session session) throws Exception {
        return session.streams().fetchStreamInfo(session.scope(), "st").get();
    }

    private static Object positions(StreamCut cut) {
        return cut.asImpl().getPositions();
    }
}
