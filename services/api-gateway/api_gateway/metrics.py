"""The metrics of the gateway, beside those all services share."""

from prometheus_client import Counter, Gauge

PENDING = Gauge("sluice_requests_pending", "Requests that wait for their reply off the journal")
PENDING_LIMIT = Gauge("sluice_requests_pending_limit", "How many may wait before callers are refused")
HELD = Gauge("sluice_calls_held", "Calls that wait until the journal is released")
RPC_DEFECTS = Counter("sluice_rpc_defects", "RPCs that failed by an unexpected error; the log has its stack", ["rpc"])
CONSOLE = Gauge("sluice_console", "1 where a process serves what operators use: /sluice/v1 and the page")
FEEDS = Gauge("sluice_feeds", "Feeds of events that pages have open")
FEEDS_REFUSED = Counter("sluice_feeds_refused", "Feeds of events that were refused: too many, or the gateway stops")
