package io.sluice.client;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pravega.client.ClientConfig;
import io.pravega.client.KeyValueTableFactory;
import io.pravega.client.tables.KeyValueTable;
import io.pravega.client.tables.KeyValueTableClientConfiguration;
import io.pravega.client.tables.Put;
import io.pravega.client.tables.TableEntry;
import io.pravega.client.tables.TableKey;
import java.io.PrintStream;
import java.net.URI;
import java.nio.ByteBuffer;
import java.util.concurrent.ExecutionException;

/**
 * Uses a key-value table together with a client of another language: prints its entry of {@code 0003} and {@code zz},
 * then writes {@code value N} under each number of four digits and {@code aa}.
 *
 * <p>The arguments are the controller's URI, the scope, the table and how many entries to write.
 */
public final class TablePeer {
    private TablePeer() {
    }

    public static void main(String[] arguments) throws ExecutionException, InterruptedException {
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(arguments[0])).build();
        PrintStream out = new PrintStream(System.out, true, UTF_8);
        try (KeyValueTableFactory factory = KeyValueTableFactory.withScope(arguments[1], config);
                KeyValueTable table = factory.forKeyValueTable(
                        arguments[2], KeyValueTableClientConfiguration.builder().build())) {
            TableEntry theirs = table.get(key(3, "zz")).get();
            out.println(theirs == null ? "nothing" : UTF_8.decode(theirs.getValue()));
            for (int number = 0; number < Integer.parseInt(arguments[3]); number++) {
                table.update(new Put(key(number, "aa"), text("value " + number))).get();
            }
        }
        System.exit(0); // The client's threads would keep it a while.
    }

    private static TableKey key(int number, String secondary) {
        return new TableKey(text("%04d".formatted(number)), text(secondary));
    }

    private static ByteBuffer text(String value) {
        return ByteBuffer.wrap(value.getBytes(UTF_8));
    }
}
