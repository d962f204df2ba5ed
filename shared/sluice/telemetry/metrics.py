"""The Prometheus metrics that services share. Names are part of what operators rely on."""

from prometheus_client import Counter, Gauge, Histogram

JOURNAL_RECORDS = Counter("sluice_journal_records", "Journal records folded by this process")
JOURNAL_VOID = Counter("sluice_journal_void_records", "Journal records without effect", ["service", "why"])
RPC_SECONDS = Histogram(
    "sluice_rpc_seconds",
    "Time to answer an RPC",
    ["rpc", "code"],
    buckets=(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120),
)
WORKFLOW_SECONDS = Histogram(
    "sluice_workflow_seconds",
    "Time from the first event of a workflow to its last",
    ["workflow"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120, 600),
)
WORKFLOW_RETRIES = Counter("sluice_workflow_retries", "Workflow steps tried again", ["workflow"])
DEAD_LETTERS = Counter("sluice_dead_letters", "Records given up, by topic", ["topic"])
OPEN_RECORDS = Gauge("sluice_open_records", "Records taken from a topic and not accepted yet", ["topic"])
CONTAINER_MOVES = Counter("sluice_container_moves", "Containers given to another segment store")
