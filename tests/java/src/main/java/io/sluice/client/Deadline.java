package io.sluice.client;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/** A point in time until which something has to happen. */
public final class Deadline {
    private static final Duration PAUSE = Duration.ofMillis(20);

    private final long end;
    private final Duration length;

    private Deadline(Duration length) {
        this.length = length;
        this.end = System.nanoTime() + length.toNanos();
    }

    public static Deadline in(Duration length) {
        return new Deadline(length);
    }

    /** Fails if the time is up; the message says what has not happened. */
    public void check(String what) {
        if (System.nanoTime() - end > 0) {
            throw new AssertionError("not within " + length.toSeconds() + " s: " + what);
        }
    }

    /** Waits until the condition holds, or fails. */
    public void await(BooleanSupplier condition, String what) {
        while (!condition.getAsBoolean()) {
            check(what);
            LockSupport.parkNanos(PAUSE.toNanos());
        }
    }
}
