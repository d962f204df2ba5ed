"""The metrics of txn-manager, beside those all services share."""

from prometheus_client import Counter, Gauge, Histogram

OPENED = Counter("sluice_transactions_opened", "Transactions whose segments were created")
ENDING = Counter("sluice_transactions_ending", "Transactions whose end was decided, by what it is", ["end"])
BATCH = Histogram(
    "sluice_commit_batch", "Transactions in one batch of commits", buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500)
)
WAITING = Gauge("sluice_commits_waiting", "Transactions that wait for their commit, in the partitions owned here")
OPEN = Gauge("sluice_transactions_open", "Open transactions, in the partitions owned here")
PREPARED = Gauge("sluice_transactions_prepared", "Transactions that are prepared, in the partitions owned here")
OVERDUE = Gauge("sluice_leases_overdue", "Open transactions whose lease and grace have run out, of those owned here")
OVERDUE_SECONDS = Gauge("sluice_lease_overdue_seconds", "Since when the most overdue lease has run out, grace included")
LATENESS = Histogram(
    "sluice_timer_lateness_seconds",
    "How late a lease that has run out is checked, each time it is",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
)
UNDECIDED = Gauge("sluice_transaction_requests_undecided", "Requests that are in no record of the journal yet")
LEASES = Counter("sluice_leases_checked", "Leases that seemed to have run out, by what became of them", ["outcome"])
