import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.schemaregistry.client.SchemaRegistryClient;
import io.pravega.schemaregistry.client.SchemaRegistryClientConfig;
import io.pravega.schemaregistry.client.SchemaRegistryClientFactory;
import io.pravega.schemaregistry.client.exceptions.RegistryExceptions;
import io.pravega.schemaregistry.contract.data.Compatibility;
import io.pravega.schemaregistry.contract.data.SerializationFormat;
import io.pravega.schemaregistry.serializer.avro.schemas.AvroSchema;
import io.pravega.schemaregistry.serializer.shared.impl.SerializerConfig;
import io.pravega.schemaregistry.serializers.SerializerFactory;
import java.net.URI;
import java.util.Map;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;

/**
 * Orders in a stream, whose schemas are in Pravega's schema registry. Who reads knows none of them beforehand.
 *
 * <p>{@code write} adds events of a schema and registers it, {@code read} prints so many events from the beginning,
 * {@code schemas} what is registered.
 */
public final class Orders {
    private static final String SCOPE = "orders";
    private static final String STREAM = "placed";
    private static final String ORDER = """
            {"type": "record", "name": "Order", "fields": [{"name": "number", "type": "%s"}%s]}""";
    /** What an order is. `renumbered` cannot read what was written before: it is refused. */
    private static final Map<String, Schema> KINDS = Map.of(
            "first", parsed("int", ""),
            "second", parsed("int", """
                    , {"name": "note", "type": "string", "default": ""}"""),
            "renumbered", parsed("string", ""));
    private static final long WAIT_MILLIS = 30_000;

    private Orders() {
    }

    public static void main(String[] arguments) {
        if (arguments.length < 3) {
            System.err.println("usage: Orders CONTROLLER REGISTRY write KIND FIRST COUNT | read COUNT | schemas");
            System.exit(2);
        }
        // Credentials and authorities of the controller are those of the process: see the README of Sluice.
        ClientConfig client = ClientConfig.builder().controllerURI(URI.create(arguments[0])).build();
        try (SchemaRegistryClient registry = registry(URI.create(arguments[1]))) {
            SerializerConfig.SerializerConfigBuilder config =
                    SerializerConfig.builder().groupId(STREAM).registryClient(registry);
            switch (arguments[2]) {
                case "write" -> write(client, config, arguments[3], Integer.parseInt(arguments[4]),
                        Integer.parseInt(arguments[5]));
                case "read" -> read(client, config.build(), Integer.parseInt(arguments[3]));
                default -> registry.getSchemaVersions(STREAM, null)
                        .forEach(schema -> System.out.println(schema.getVersionInfo()));
            }
        } catch (RegistryExceptions.SchemaValidationFailedException refused) {
            System.err.println("refused: " + refused.getMessage());
            System.exit(1);
        } catch (Exception failed) {
            failed.printStackTrace();
            System.exit(1);
        }
        System.exit(0); // The clients' threads go on.
    }

    private static SchemaRegistryClient registry(URI address) {
        SchemaRegistryClientConfig.SchemaRegistryClientConfigBuilder config =
                SchemaRegistryClientConfig.builder().schemaRegistryUri(address);
        String token = System.getenv("REGISTRY_TOKEN");
        if (token != null) {
            config.authentication("Basic", token);
        }
        String authority = System.getenv("REGISTRY_CA");
        if (authority != null) {
            config.certificate(authority);
        }
        return SchemaRegistryClientFactory.withDefaultNamespace(config.build());
    }

    private static void write(
            ClientConfig client, SerializerConfig.SerializerConfigBuilder config, String kind, int first, int count) {
        try (StreamManager streams = StreamManager.create(client)) {
            streams.createScope(SCOPE);
            streams.createStream(SCOPE, STREAM, StreamConfiguration.builder().build());
        }
        // A later schema must be able to read what was written before.
        config.createGroup(SerializationFormat.Avro, Compatibility.backward(), false).registerSchema(true);
        Schema schema = KINDS.get(kind);
        try (EventStreamClientFactory events = EventStreamClientFactory.withScope(SCOPE, client);
                EventStreamWriter<GenericRecord> writer = events.createEventWriter(STREAM,
                        SerializerFactory.avroSerializer(config.build(), AvroSchema.ofRecord(schema)),
                        EventWriterConfig.builder().build())) {
            for (int number = first; number < first + count; number++) {
                GenericRecord order = new GenericData.Record(schema);
                order.put("number", number);
                if (schema.getField("note") != null) {
                    order.put("note", "by hand");
                }
                writer.writeEvent(order);
            }
        }
    }

    private static void read(ClientConfig client, SerializerConfig config, int count) {
        String group = UUID.randomUUID().toString().replace("-", "");
        try (ReaderGroupManager groups = ReaderGroupManager.withScope(SCOPE, client)) {
            groups.createReaderGroup(group, ReaderGroupConfig.builder().stream(SCOPE + "/" + STREAM).build());
            try (EventStreamClientFactory events = EventStreamClientFactory.withScope(SCOPE, client);
                    EventStreamReader<Object> reader = events.createReader("reader", group,
                            SerializerFactory.avroGenericDeserializer(config, null),
                            ReaderConfig.builder().build())) {
                for (int number = 0; number < count;) {
                    EventRead<Object> read = reader.readNextEvent(WAIT_MILLIS);
                    if (read.isCheckpoint()) {
                        continue; // The group makes them by itself.
                    }
                    if (read.getEvent() == null) {
                        throw new IllegalStateException("there are " + number + " events only");
                    }
                    System.out.println(read.getEvent());
                    number++;
                }
            }
            groups.deleteReaderGroup(group);
        }
    }

    private static Schema parsed(String number, String more) {
        return new Schema.Parser().parse(ORDER.formatted(number, more));
    }
}
