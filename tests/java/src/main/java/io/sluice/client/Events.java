package io.sluice.client;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.Serializer;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Numbered events. The routing key follows from the number, so that order per key can be checked afterwards. */
public final class Events {
    public static final Serializer<String> TEXT = new UTF8StringSerializer();
    private static final int KEYS = 8;

    private Events() {
    }

    /** Opens a writer that is closed with the session. */
    public static EventStreamWriter<String> writer(Session session, String stream) {
        EventWriterConfig config = EventWriterConfig.builder().build();
        return session.closing(session.events().createEventWriter(stream, TEXT, config));
    }

    /** Writes the events with the numbers from {@code first} up to and without {@code end}; all are stored then. */
    public static void write(EventStreamWriter<String> writer, int first, int end) {
        for (int number = first; number < end; number++) {
            writer.writeEvent(routingKey(number), Integer.toString(number));
        }
        writer.flush();
    }

    /** The routing key of the event with this number. */
    public static String routingKey(int number) {
        return "key-" + key(number);
    }

    /** Every number of the range once. */
    public static void checkExactlyOnce(Collection<String> events, int first, int end) {
        Map<Integer, Integer> times = new HashMap<>();
        events.forEach(event -> times.merge(Integer.valueOf(event), 1, Integer::sum));
        List<Integer> missing = IntStream.range(first, end).boxed().filter(n -> !times.containsKey(n)).toList();
        List<Integer> repeated = times.keySet().stream().filter(n -> times.get(n) > 1).sorted().toList();
        List<Integer> foreign = times.keySet().stream().filter(n -> n < first || n >= end).sorted().toList();
        assertEquals("missing [], repeated [], foreign []",
                "missing %s, repeated %s, foreign %s".formatted(missing, repeated, foreign),
                "events " + first + " to " + (end - 1));
    }

    /** The numbers of each routing key rise, in the order in which one reader saw them. */
    public static void checkOrder(List<String> events) {
        Map<Integer, List<Integer>> byKey = events.stream().map(Integer::valueOf)
                .collect(Collectors.groupingBy(Events::key));
        byKey.forEach((key, numbers) ->
                assertEquals(List.copyOf(new TreeSet<>(numbers)), numbers, "order of the events of key-" + key));
    }

    private static int key(int number) {
        return number % KEYS;
    }
}
