package io.sluice.client;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.net.URI;
import java.time.Duration;

/** One scenario in a thread of its own, so that one that hangs is shown where it hangs, and given up. */
final class ScenarioRun {
    private static final String PACKAGE = ScenarioRun.class.getPackageName() + ".scenarios.";
    private static final Duration DEADLINE = Duration.ofSeconds(400);

    private final String name;
    private final URI controller;
    private volatile Throwable failure;

    ScenarioRun(String name, URI controller) {
        this.name = name;
        this.controller = controller;
    }

    /** Runs it; returns what went wrong, or null. */
    String problem() {
        Thread thread = new Thread(this::run, name);
        thread.setDaemon(true);
        thread.start();
        try {
            thread.join(DEADLINE.toMillis());
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
        if (thread.isAlive()) {
            String where = "%s did not end in %d s; it is here:%n".formatted(name, DEADLINE.toSeconds())
                    + stack(thread.getStackTrace());
            thread.interrupt();
            return where;
        }
        return failure == null ? null : text(failure);
    }

    private void run() {
        try (Session session = new Session(controller)) {
            session.createScope();
            Scenario scenario = (Scenario) Class.forName(PACKAGE + name).getDeclaredConstructor().newInstance();
            scenario.run(session);
        } catch (Throwable problem) {
            failure = problem;
        }
    }

    private static String stack(StackTraceElement[] frames) {
        StringBuilder lines = new StringBuilder();
        for (StackTraceElement frame : frames) {
            lines.append("    at ").append(frame).append(System.lineSeparator());
        }
        return lines.toString();
    }

    private static String text(Throwable problem) {
        StringWriter lines = new StringWriter();
        problem.printStackTrace(new PrintWriter(lines));
        return lines.toString();
    }
}
