package io.sluice.examples;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.time.Duration;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;

/**
 * A Pravega in a container. Ports are the same inside and outside, for clients learn from the controller where the
 * segment store is; so the engine has to run on this machine.
 */
final class SluiceDev extends GenericContainer<SluiceDev> {
    private static final String HOST = "127.0.0.1";

    private final int controllerPort = freePort();

    SluiceDev(String... options) {
        super("sluice/dev:" + System.getProperty("sluice.version", "0.1.0"));
        int storePort = freePort();
        addFixedExposedPort(controllerPort, controllerPort);
        addFixedExposedPort(storePort, storePort);
        String ports = "--grpc-port " + controllerPort + " --store-port " + storePort;
        withCommand(ports + " " + String.join(" ", options));
        waitingFor(Wait.forLogMessage(".*\"controller\".*", 1).withStartupTimeout(Duration.ofSeconds(60)));
    }

    URI controller() {
        return URI.create("tcp://" + HOST + ":" + controllerPort);
    }

    private static int freePort() {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getByName(HOST))) {
            return socket.getLocalPort();
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
