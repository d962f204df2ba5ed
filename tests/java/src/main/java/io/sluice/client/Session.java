package io.sluice.client;

import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import java.net.URI;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.UUID;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;

/** What one scenario has of its own: a scope, and whatever it opened of the client, closed when it ends. */
public final class Session implements AutoCloseable {
    private static final int THREADS = 3;

    private final Deque<AutoCloseable> opened = new ArrayDeque<>();
    private final ClientConfig config;
    private final String scope = "java" + UUID.randomUUID().toString().substring(0, 8);
    private final ScheduledExecutorService threads = Executors.newScheduledThreadPool(THREADS);
    private final StreamManager streams;
    private EventStreamClientFactory events;
    private ReaderGroupManager groups;

    Session(URI controller) {
        config = ClientConfig.builder().controllerURI(controller).build();
        closing(threads::shutdownNow);
        streams = closing(StreamManager.create(config));
    }

    void createScope() {
        if (!streams.createScope(scope)) {
            throw new AssertionError("createScope says that " + scope + " was there already");
        }
    }

    public ClientConfig config() {
        return config;
    }

    public String scope() {
        return scope;
    }

    public StreamManager streams() {
        return streams;
    }

    /** For what the scenario does side by side, and for those calls of the client that want threads. */
    public ScheduledExecutorService threads() {
        return threads;
    }

    public EventStreamClientFactory events() {
        if (events == null) {
            events = closing(EventStreamClientFactory.withScope(scope, config));
        }
        return events;
    }

    public ReaderGroupManager groups() {
        if (groups == null) {
            groups = closing(ReaderGroupManager.withScope(scope, config));
        }
        return groups;
    }

    /** Creates a stream of the scope with so many segments. */
    public Stream stream(String name, int segments) {
        ScalingPolicy scaling = ScalingPolicy.fixed(segments);
        if (!streams.createStream(scope, name, StreamConfiguration.builder().scalingPolicy(scaling).build())) {
            throw new AssertionError("createStream says that " + name + " was there already");
        }
        return Stream.of(scope, name);
    }

    /** Closes something when the scenario ends, the last one first. */
    public <T extends AutoCloseable> T closing(T resource) {
        opened.push(resource);
        return resource;
    }

    @Override
    public void close() throws Exception {
        Exception first = null;
        while (!opened.isEmpty()) {
            try {
                opened.pop().close();
            } catch (Exception problem) {
                first = first == null ? problem : first;
            }
        }
        if (first != null) {
            throw first;
        }
    }
}
