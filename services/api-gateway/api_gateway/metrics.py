"""The metrics of the gateway, beside those all services share."""

from prometheus_client import Gauge

PENDING = Gauge("sluice_requests_pending", "Requests that wait for their reply off the journal")
PENDING_LIMIT = Gauge("sluice_requests_pending_limit", "How many may wait before callers are refused")
