"""The Prometheus metrics that services share. Names are part of what operators rely on; docs/telemetry.md lists them.

What a service alone has stands in its own `metrics` module. Gauges that take a look at something larger are brought up
to date when they are scraped (`scrape`), not when it changes.
"""

from prometheus_client import Counter, Gauge, Histogram, Info

# The process.

PROCESS = Info("sluice_process", "Which service this is, which instance of it, and its version")
EVENT_LOOP_LAG = Histogram(
    "sluice_event_loop_lag_seconds",
    "How late the event loop comes to what is due, looked at twice a second",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
READY = Gauge("sluice_ready", "1 while /readyz says that the service can serve")
CHECKS = Gauge("sluice_check_failing", "1 while a check of /readyz finds something wrong", ["check", "effect"])
CERTIFICATE_LEFT = Gauge(
    "sluice_certificate_left_seconds", "Time until the first certificate in use expires", ["certificate"]
)
CERTIFICATE_RENEWAL = Gauge(
    "sluice_certificate_renewal_seconds", "How long before its end that certificate should be replaced", ["certificate"]
)
SCRAPE_FAILURES = Counter(
    "sluice_scrape_failures", "Times a group of gauges could not be brought up to date", ["group"]
)

# The journal.

JOURNAL_RECORDS = Counter("sluice_journal_records", "Journal records folded by this process")
JOURNAL_VOID = Counter("sluice_journal_void_entries", "Journal entries without effect", ["service", "why"])
JOURNAL_LAG = Gauge("sluice_journal_lag_records", "Journal records there are and this process lacks", ["partition"])
JOURNAL_BEHIND = Gauge(
    "sluice_journal_behind_seconds",
    "Since when this process lacks a journal record that it knows to be there, 0 if it lacks none",
    ["partition"],
)
JOURNAL_STOPPED = Gauge("sluice_journal_stopped_partitions", "Partitions with a record that cannot be applied")
JOURNAL_DIFFERENCES = Counter(
    "sluice_journal_differences", "Markers at which another follower had judged the records before differently"
)
SNAPSHOTS_REFUSED = Counter("sluice_snapshots_refused", "Snapshots that this process looked at and did not load")
SNAPSHOT_OFFSET = Gauge("sluice_snapshot_offset", "Journal offset of the newest confirmed snapshot", ["partition"])
SNAPSHOT_TIME = Gauge(
    "sluice_snapshot_timestamp_seconds",
    "When the journal took the marker of the newest confirmed snapshot",
    ["partition"],
)
SNAPSHOT_BYTES = Gauge("sluice_snapshot_bytes", "Length of the newest confirmed snapshot", ["partition"])
SNAPSHOT_DIFFERS = Gauge(
    "sluice_snapshot_differs", "1 while two runs of the newest snapshot have come to different states", ["partition"]
)
JOURNAL_BEGIN = Gauge("sluice_journal_begin_offset", "Where the journal begins since it was trimmed", ["partition"])
PARTITIONS = Gauge("sluice_partitions", "Partitions that each keyed topic has in this deployment")

# Calls.

_CALL_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120)
RPC_SECONDS = Histogram("sluice_rpc_seconds", "Time to answer an RPC", ["rpc", "code"], buckets=_CALL_BUCKETS)
HTTP_SECONDS = Histogram(
    "sluice_http_seconds", "Time to answer an HTTP request", ["method", "path", "status"], buckets=_CALL_BUCKETS
)

# Workflows.

WORKFLOWS = Gauge("sluice_workflows", "Workflows that have not ended, as the journal shows", ["workflow", "state"])
WORKFLOW_OLDEST = Gauge(
    "sluice_workflow_oldest_seconds", "Age of the oldest workflow of a kind and state", ["workflow", "state"]
)
WORKFLOW_SECONDS = Histogram(
    "sluice_workflow_seconds",
    "Time from the first event of a workflow to its last",
    ["workflow"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600),
)
WORKFLOW_RETRIES = Counter("sluice_workflow_retries", "Workflow steps tried again", ["workflow"])

# Messages.

OPEN_RECORDS = Gauge("sluice_open_records", "Records taken from a topic and not acknowledged yet", ["topic"])
OLDEST_RECORD = Gauge(
    "sluice_oldest_open_record_seconds",
    "Time since the broker appended the oldest record taken from a topic and not acknowledged yet",
    ["topic"],
)
KEYS_AT_WORK = Gauge("sluice_keys_at_work", "Keys with a record or a workflow that is handled or waits", ["topic"])
PARTITIONS_OWNED = Gauge("sluice_partitions_owned", "Partitions of a topic that this instance consumes", ["topic"])
REBALANCES = Counter("sluice_rebalances", "Times this instance's share of a topic changed", ["topic"])
DEAD_LETTERS = Counter("sluice_dead_letters", "Records that became dead letters, by topic", ["topic"])
PRODUCER_ERRORS = Counter("sluice_producer_errors", "Records that Kafka did not take or acknowledge", ["why"])
PRODUCER_QUEUE = Gauge("sluice_producer_queue_records", "Records handed to the producer and not acknowledged yet")

# The cluster.

SILENT_CONTAINERS = Gauge(
    "sluice_silent_containers",
    "Containers that do not answer, by the segment store that ran them when they fell silent",
    ["store"],
)
CONTAINER_MOVES = Counter("sluice_container_moves", "Containers given to another segment store")
