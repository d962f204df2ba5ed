package io.sluice.client;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ReaderGroupConfig.ReaderGroupConfigBuilder;

/** Reader groups of a session. */
public final class Groups {
    private static final int REFRESH_MILLIS = 200;
    private static final int CHECKPOINT_MILLIS = 500;

    private Groups() {
    }

    /** A configuration to begin with. Readers go on to the successors of a segment at the group's next checkpoint. */
    public static ReaderGroupConfigBuilder config() {
        return ReaderGroupConfig.builder().groupRefreshTimeMillis(REFRESH_MILLIS)
                .automaticCheckpointIntervalMillis(CHECKPOINT_MILLIS);
    }

    /** The same, but only the checkpoints that are asked for are taken. */
    public static ReaderGroupConfigBuilder configWithoutCheckpoints() {
        return config().disableAutomaticCheckpoints();
    }

    /** Creates a group that was not there. */
    public static ReaderGroup create(Session session, String name, ReaderGroupConfig config) {
        assertTrue(session.groups().createReaderGroup(name, config), "createReaderGroup says that it is a new group");
        return session.closing(session.groups().getReaderGroup(name));
    }

    /** Creates a group that reads a whole stream. */
    public static ReaderGroup create(Session session, String name, String stream) {
        return create(session, name, config().stream(session.scope() + "/" + stream).build());
    }
}
