"""The metrics of the timers, beside those all services share."""

from prometheus_client import Counter, Gauge, Histogram

TIMERS_SET = Counter("sluice_timers_set", "Timers begun or moved in Redis, refills not counted")
TIMERS_CANCELLED = Counter("sluice_timers_cancelled", "Timers taken out of Redis")
TIMERS_FIRED = Counter("sluice_timers_fired", "Timers that were due, each time Redis returned them")
ON_DUE_FAILURES = Counter("sluice_timers_on_due_failures", "Batches of due timers not checked; they fire again")
REFILLS = Counter("sluice_timer_refills", "Partitions whose timers were written to Redis again", ["why"])
REFILL_FAILURES = Counter("sluice_timer_refill_failures", "Refills that ended early; they are begun again")
TICK_SECONDS = Histogram(
    "sluice_timer_tick_seconds",
    "Time from a partition's tick until every timer that was due has been checked",
    buckets=(0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
REDIS_FAILURES = Counter("sluice_timer_redis_failures", "Calls on Redis that failed")
PENDING = Gauge("sluice_timers_pending", "Changes of timers not written to Redis yet")
