package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertNull;

import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.sluice.client.Events;
import io.sluice.client.GroupReader;
import io.sluice.client.Groups;
import io.sluice.client.Scaling;
import io.sluice.client.Scenario;
import io.sluice.client.Session;

/** A group between two stream cuts, with a scaling between them, reads exactly what lies between. */
public final class BoundedReaderGroup implements Scenario {
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

        Groups.create(session, "rg", Groups.config().stream(stream, from, to).build());
        try (GroupReader reader = new GroupReader(session, "rg", "reader-1")) {
            Events.checkExactlyOnce(reader.read(300 - 100), 100, 300);
            assertNull(reader.poll(), "an event behind the second cut");
        }
    }

    private static StreamCut tail(Session session) throws Exception {
        return session.streams().fetchStreamInfo(session.scope(), "st").get().getTailStreamCut();
    }
}
