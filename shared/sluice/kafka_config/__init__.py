"""How every client of Kafka is configured, and the one place where it is done.

`conf` reads what the operator gives (`SLUICE_KAFKA_CONF`, in librdkafka's names) and refuses what Sluice relies on;
`clients` joins it with what each kind of client needs; `security`, `java` and `python` say it in the words of drivers
that are not librdkafka: Spark's Java client, and aiokafka under Faust.

Functions without state: they may be called from any thread.
"""
