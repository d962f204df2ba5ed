package io.sluice.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pravega.client.SynchronizerClientFactory;
import io.pravega.client.state.InitialUpdate;
import io.pravega.client.state.Revision;
import io.pravega.client.state.Revisioned;
import io.pravega.client.state.StateSynchronizer;
import io.pravega.client.state.SynchronizerConfig;
import io.pravega.client.state.Update;
import io.pravega.client.stream.Serializer;
import java.nio.ByteBuffer;
import java.util.HashSet;
import java.util.Set;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The members of a group of workers, as those in Python keep them; of the state only who is there is kept here. */
final class Members implements AutoCloseable {
    private final StateSynchronizer<State> shared;
    private final String name;

    Members(SynchronizerClientFactory factory, String stream, String name) {
        this.name = name;
        shared = factory.createStateSynchronizer(
                stream, new Text<>(Change::new), new Text<>(Initial::new), SynchronizerConfig.builder().build());
        shared.fetchUpdates();
        change("Joined", false);
    }

    /** Shows that this member is there; nothing if others have declared it gone. */
    void beat() {
        change("Beaten", true);
    }

    @Override
    public void close() {
        change("Left", true);
        shared.close();
    }

    private synchronized void change(String type, boolean ifThere) {
        shared.updateState((state, updates) -> {
            if (state.members().contains(name) == ifThere) {
                updates.add(new Change(String.format("{\"type\":\"%s\",\"member\":\"%s\"}", type, name)));
            }
        });
    }

    private record State(String getScopedStreamName, Revision getRevision, Set<String> members)
            implements Revisioned {
    }

    private record Change(String json) implements Update<State> {
        private static final Pattern JSON = Pattern.compile("\\{\"type\":\"(\\w+)\",\"member\":\"([^\"]+)\".*\\}");

        @Override
        public State applyTo(State old, Revision revision) {
            Matcher found = JSON.matcher(json);
            if (!found.matches()) {
                throw new IllegalArgumentException(json);
            }
            Set<String> members = new HashSet<>(old.members);
            switch (found.group(1)) {
                case "Joined" -> members.add(found.group(2));
                case "Left", "DeclaredGone" -> members.remove(found.group(2));
                default -> { } // A heartbeat.
            }
            return new State(old.getScopedStreamName, revision, members);
        }

        @Override
        public String toString() {
            return json;
        }
    }

    private record Initial(String json) implements InitialUpdate<State> {
        private static final Pattern MEMBER = Pattern.compile("\"([^\"]+)\":\\d+");

        @Override
        public State create(String name, Revision revision) {
            Set<String> members = new HashSet<>();
            MEMBER.matcher(json).results().forEach(found -> members.add(found.group(1)));
            return new State(name, revision, members);
        }

        @Override
        public String toString() {
            return json;
        }
    }

    private record Text<T>(Function<String, T> kind) implements Serializer<T> {
        @Override
        public ByteBuffer serialize(T value) {
            return ByteBuffer.wrap(value.toString().getBytes(UTF_8));
        }

        @Override
        public T deserialize(ByteBuffer bytes) {
            return kind.apply(UTF_8.decode(bytes).toString());
        }
    }
}
