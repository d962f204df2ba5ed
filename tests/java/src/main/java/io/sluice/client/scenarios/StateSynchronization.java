package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.state.InitialUpdate;
import io.pravega.client.state.Revision;
import io.pravega.client.state.Revisioned;
import io.pravega.client.state.StateSynchronizer;
import io.pravega.client.state.SynchronizerConfig;
import io.pravega.client.state.Update;
import io.pravega.client.stream.impl.JavaSerializer;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.io.Serializable;
import java.util.concurrent.CompletableFuture;

/** Two processes count on one shared counter at a time: no step is lost, none is counted twice. */
public final class StateSynchronization implements Scenario {
    private static final int STEPS = 50;

    @Override
    public void run(Session session) {
        session.stream("state", 1);
        SynchronizerClientFactory factory =
                session.closing(SynchronizerClientFactory.withScope(session.scope(), session.config()));
        StateSynchronizer<Counter> one = open(session, factory);
        StateSynchronizer<Counter> two = open(session, factory);
        one.initialize(new Begin(0));
        CompletableFuture<Void> other = CompletableFuture.runAsync(() -> count(two), session.threads());
        count(one);
        other.join();
        one.fetchUpdates();
        assertEquals(2 * STEPS, one.getState().value(), "the counter");
        one.compact(state -> new Begin(state.value()));
        two.fetchUpdates();
        assertEquals(2 * STEPS, two.getState().value(), "the counter after compaction");
    }

    private static void count(StateSynchronizer<Counter> synchronizer) {
        synchronizer.fetchUpdates();
        for (int step = 0; step < STEPS; step++) {
            synchronizer.updateState((state, updates) -> {
                updates.add(new Set(state.value() + 1));
            });
        }
    }

    private static StateSynchronizer<Counter> open(Session session, SynchronizerClientFactory factory) {
        SynchronizerConfig config = SynchronizerConfig.builder().build();
        return session.closing(factory.createStateSynchronizer(
                "state", new JavaSerializer<Set>(), new JavaSerializer<Begin>(), config));
    }

    private record Counter(String name, Revision revision, int value) implements Revisioned {
        @Override
        public String getScopedStreamName() {
            return name;
        }

        @Override
        public Revision getRevision() {
            return revision;
        }
    }

    /** Absolute, so that an update that was decided on an old state would lose a step. */
    private record Set(int value) implements Update<Counter>, Serializable {
        @Override
        public Counter applyTo(Counter old, Revision revision) {
            return new Counter(old.name(), revision, value);
        }
    }

    private record Begin(int value) implements InitialUpdate<Counter>, Serializable {
        @Override
        public Counter create(String name, Revision revision) {
            return new Counter(name, revision, value);
        }
    }
}
