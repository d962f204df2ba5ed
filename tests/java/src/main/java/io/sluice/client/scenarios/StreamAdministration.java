package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.admin.StreamManager;
import io.pravega.client.stream.RetentionPolicy;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Set;

/** Scopes and streams are created, listed, found by tag, updated, sealed, deleted. */
public final class StreamAdministration implements Scenario {
    private static final StreamConfiguration TAGGED = StreamConfiguration.builder()
            .scalingPolicy(ScalingPolicy.byEventRate(100, 2, 2)).tag("red").tag("green").build();
    private static final StreamConfiguration PLAIN =
            StreamConfiguration.builder().scalingPolicy(ScalingPolicy.fixed(1)).build();

    @Override
    public void run(Session session) throws Exception {
        create(session.streams(), session.scope());
        list(session.streams(), session.scope());
        update(session.streams(), session.scope());
        remove(session.streams(), session.scope());
    }

    private static void create(StreamManager streams, String scope) {
        assertFalse(streams.createScope(scope), "a scope is created once only");
        assertTrue(streams.checkScopeExists(scope), "the scope exists");
        assertTrue(streams.createStream(scope, "tagged", TAGGED), "the stream is new");
        assertFalse(streams.createStream(scope, "tagged", TAGGED), "a stream is created once only");
        assertTrue(streams.createStream(scope, "plain", PLAIN), "the other stream is new");
        assertTrue(streams.checkStreamExists(scope, "tagged"), "the stream exists");
        assertFalse(streams.checkStreamExists(scope, "missing"), "a stream that was never created does not exist");
        assertThrows(IllegalArgumentException.class, () -> streams.createStream(scope + "none", "plain", PLAIN),
                "a stream in a missing scope");
    }

    private static void list(StreamManager streams, String scope) {
        Set<String> scopes = new HashSet<>();
        streams.listScopes().forEachRemaining(scopes::add);
        assertTrue(scopes.containsAll(Set.of(scope, "_system")), "the scope and that of the system are listed");
        assertEquals(Set.of("tagged", "plain"), names(streams.listStreams(scope)), "streams of the scope");
        assertEquals(Set.of("tagged"), names(streams.listStreams(scope, "red")), "streams with the tag");
        assertEquals(Set.of("red", "green"), Set.copyOf(streams.getStreamTags(scope, "tagged")), "tags");
    }

    private static void update(StreamManager streams, String scope) throws Exception {
        StreamConfiguration changed = StreamConfiguration.builder().scalingPolicy(ScalingPolicy.fixed(2))
                .retentionPolicy(RetentionPolicy.bySizeBytes(1_000_000)).tag("green").tag("blue").build();
        assertTrue(streams.updateStream(scope, "tagged", changed), "the stream is updated");
        assertEquals(changed, streams.fetchStreamInfo(scope, "tagged").get().getStreamConfiguration(),
                "the configuration after the update");
        assertEquals(Set.of(), names(streams.listStreams(scope, "red")), "streams with the tag that was taken away");
        assertEquals(Set.of("tagged"), names(streams.listStreams(scope, "blue")), "streams with the new tag");
        assertThrows(IllegalArgumentException.class, () -> streams.updateStream(scope, "missing", changed),
                "an update of a missing stream");
    }

    private static void remove(StreamManager streams, String scope) throws Exception {
        assertThrows(IllegalArgumentException.class, () -> streams.deleteStream(scope, "plain"),
                "a stream that is not sealed is not deleted");
        assertThrows(IllegalStateException.class, () -> streams.deleteScope(scope), "a scope that is not empty stays");
        for (String name : List.of("plain", "tagged")) {
            assertTrue(streams.sealStream(scope, name), "the stream is sealed");
            assertTrue(streams.fetchStreamInfo(scope, name).get().isSealed(), "the stream says that it is sealed");
            assertTrue(streams.deleteStream(scope, name), "the stream is deleted");
            assertFalse(streams.deleteStream(scope, name), "a stream is deleted once only");
        }
        assertEquals(Set.of(), names(streams.listStreams(scope)), "streams of the scope in the end");
        assertTrue(streams.deleteScope(scope), "the empty scope is deleted");
        assertFalse(streams.checkScopeExists(scope), "the scope is gone");
    }

    /** What users created: the client also lists the streams that the controller keeps for itself. */
    private static Set<String> names(Iterator<Stream> streams) {
        Set<String> names = new HashSet<>();
        streams.forEachRemaining(stream -> names.add(stream.getStreamName()));
        names.removeIf(name -> name.startsWith("_"));
        return names;
    }
}
