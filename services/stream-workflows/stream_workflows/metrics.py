"""The metrics of stream-workflows, beside those all services share."""

from prometheus_client import Counter, Histogram

PERIODIC_SECONDS = Histogram(
    "sluice_periodic_seconds",
    "Time for one round of a periodic task over all streams that need it",
    ["task"],
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300),
)
PERIODIC_FAILURES = Counter("sluice_periodic_failures", "Rounds and streams that a periodic task failed on", ["task"])
WATERMARKS = Counter("sluice_watermarks", "Watermarks computed, by what became of them", ["outcome"])
REPORTS = Counter("sluice_segment_store_reports", "Events that segment stores appended, by what was done", ["outcome"])
SAMPLES = Counter("sluice_retention_samples", "Stream cuts sampled for retention")
