package io.sluice.client.scenarios;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.pravega.client.ClientConfig;
import io.pravega.client.admin.StreamManager;
import io.sluice.client.Scenario;
import io.sluice.client.Session;
import java.net.URI;

/**
 * With a URI {@code pravega://} the client asks the controller where all controllers are, and goes there. Pravega's
 * standalone, where the controller is no cluster, refuses this one.
 */
public final class ServiceDiscovery implements Scenario {
    @Override
    public void run(Session session) {
        URI controller = URI.create("pravega://" + session.config().getControllerURI().getAuthority());
        ClientConfig config = ClientConfig.builder().controllerURI(controller).build();
        try (StreamManager streams = StreamManager.create(config)) {
            assertTrue(streams.checkScopeExists(session.scope()), "the scope exists");
        }
    }
}
