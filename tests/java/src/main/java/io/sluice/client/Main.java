package io.sluice.client;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;

/**
 * Runs scenarios one after the other, as they are asked for on the standard input: a line is the name of a class in
 * {@code io.sluice.client.scenarios}. Each is answered on the standard output by what there is to say about it, then by
 * {@code === passed} or {@code === failed} and the milliseconds. Ends with its input, so with its caller.
 *
 * <p>The one argument is the controller's URI, such as {@code tcp://127.0.0.1:9090}.
 */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) throws IOException {
        if (arguments.length != 1) {
            System.err.println("usage: Main CONTROLLER-URI");
            System.exit(2);
        }
        URI controller = URI.create(arguments[0]);
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        BufferedReader names = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String name = names.readLine(); name != null; name = names.readLine()) {
            long began = System.nanoTime();
            String problem = new ScenarioRun(name, controller).problem();
            if (problem != null) {
                answers.println(problem);
            }
            long tookMillis = (System.nanoTime() - began) / 1_000_000;
            answers.printf("=== %s %d%n", problem == null ? "passed" : "failed", tookMillis);
        }
        System.exit(0); // A scenario that was given up may still hold threads.
    }
}
