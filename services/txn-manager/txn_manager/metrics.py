"""The metrics of txn-manager, beside those all services share."""

from prometheus_client import Counter, Gauge, Histogram

OPENED = Counter("sluice_transactions_opened", "Transactions whose segments were created")
ENDING = Counter("sluice_transactions_ending", "Transactions whose end was decided, by what it is", ["end"])
BATCH = Histogram(
    "sluice_commit_batch", "Transactions in one batch of commits", buckets=(1, 2, 5, 10, 20, 50, 100, 200, 500)
)
WAITING = Gauge("sluice_commits_waiting", "Transactions that wait for their commit, in the partitions owned here")
UNDECIDED = Gauge("sluice_transaction_requests_undecided", "Requests that are in no record of the journal yet")
LEASES = Counter("sluice_leases_checked", "Leases that seemed to have run out, by what became of them", ["outcome"])
