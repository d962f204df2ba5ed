package io.sluice.client;

/** Something that a user of Pravega does. It ends normally if all that it expects holds, and throws otherwise. */
@FunctionalInterface
public interface Scenario {
    void run(Session session) throws Exception;
}
