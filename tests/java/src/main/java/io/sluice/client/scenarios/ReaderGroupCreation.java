package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.stream.ConfigMismatchException;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ReaderGroupNotFoundException;
import io.sluice.client.Groups;
import io.sluice.client.Scenario;
import io.sluice.client.Session;

/**
 * A group that is there already is taken if its configuration is equal, and refused if it is not. The client says
 * "created" as long as the configuration is the first one, whoever created the group.
 */
public final class ReaderGroupCreation implements Scenario {
    @Override
    public void run(Session session) {
        String stream = session.stream("st", 2).getScopedName();
        ReaderGroupConfig config = Groups.config().stream(stream).build();
        ReaderGroupConfig other = Groups.config().stream(stream).maxOutstandingCheckpointRequest(7).build();
        Groups.create(session, "rg", config);
        assertTrue(session.groups().createReaderGroup("rg", config), "the configuration is equal and the first");
        assertThrows(ConfigMismatchException.class, () -> session.groups().createReaderGroup("rg", other),
                "with another configuration");

        session.closing(session.groups().getReaderGroup("rg")).resetReaderGroup(other);
        assertFalse(session.groups().createReaderGroup("rg", other), "the configuration is equal and not the first");
        assertThrows(ConfigMismatchException.class, () -> session.groups().createReaderGroup("rg", config),
                "with the first configuration");

        session.groups().deleteReaderGroup("rg");
        assertThrows(ReaderGroupNotFoundException.class, () -> session.groups().getReaderGroup("rg"), "after deletion");
        assertTrue(session.groups().createReaderGroup("rg", other), "the name is free again");

        ReaderGroupConfig missing = Groups.config().stream(session.scope() + "/missing").build();
        assertThrows(IllegalArgumentException.class, () -> session.groups().createReaderGroup("_rg", config),
                "with a name that is not allowed");
        assertThrows(RuntimeException.class, () -> session.groups().createReaderGroup("other", missing),
                "on a stream that does not exist");
    }
}
