"""The metrics of retention-spark, by query, beside those all services share."""

from prometheus_client import Counter, Gauge, Histogram

ACTIVE = Gauge("sluice_spark_active", "1 while this instance decides, 0 on standby")
INPUT_ROWS = Counter("sluice_spark_input_records", "Reports read", ["query"])
INPUT_RATE = Gauge("sluice_spark_input_records_per_second", "Reports read per second in the last batch", ["query"])
LAG = Gauge("sluice_spark_lag_records", "Reports in the topic that the last batch left unread", ["query"])
BATCH_SECONDS = Histogram(
    "sluice_spark_batch_seconds",
    "Time that a batch took",
    ["query"],
    buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
PHASE_SECONDS = Counter("sluice_spark_phase_seconds", "Time that batches spent, by Spark's phases", ["query", "phase"])
STATE_ROWS = Gauge("sluice_spark_state_rows", "Buckets of keys whose state is stored", ["query"])
STATE_BYTES = Gauge("sluice_spark_state_bytes", "Memory that the state stores use", ["query"])
FAILURES = Counter("sluice_spark_query_failures", "Times a query ended by an error and was started again", ["query"])
