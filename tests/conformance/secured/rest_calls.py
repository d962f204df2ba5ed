"""Every call over HTTP, and what it needs."""

from collections.abc import Iterator
from typing import Any

from conformance.secured.operations import READ, UPDATE, Needs, Operation, needs
from conformance.secured.users import On

_ROOT, _SCOPE, _STREAM, _GROUP, _TABLE = On.ROOT, On.SCOPE, On.STREAM, On.GROUP, On.TABLE

_CONFIG = {"scalingPolicy": {"type": "FIXED_NUM_SEGMENTS", "minSegments": 1}}

_PRAVEGAS: tuple[tuple[str, str, Any, Needs], ...] = (
    ("GET", "/v1/scopes", None, needs(READ, _ROOT)),
    ("POST", "/v1/scopes", {"scopeName": "made"}, needs(UPDATE, _ROOT)),
    ("GET", "/v1/scopes/sec", None, needs(READ, _SCOPE)),
    ("DELETE", "/v1/scopes/sec", None, needs(UPDATE, _ROOT)),
    ("GET", "/v1/scopes/sec/streams", None, needs(READ, _SCOPE)),
    ("POST", "/v1/scopes/sec/streams", {"streamName": "st", **_CONFIG}, needs(UPDATE, _SCOPE)),
    ("GET", "/v1/scopes/sec/streams/st", None, needs(READ, _STREAM)),
    ("GET", "/v1/scopes/sec/streams/_RGrg", None, needs(READ, On.STATE)),
    ("PUT", "/v1/scopes/sec/streams/st", _CONFIG, needs(UPDATE, _STREAM)),
    ("DELETE", "/v1/scopes/sec/streams/st", None, needs(UPDATE, _STREAM)),
    ("PUT", "/v1/scopes/sec/streams/st/state", {"streamState": "SEALED"}, needs(UPDATE, _STREAM)),
    ("GET", "/v1/scopes/sec/streams/st/scaling-events?from=0&to=1", None, needs(READ, _STREAM)),
    ("GET", "/v1/scopes/sec/readergroups", None, needs(READ, _SCOPE)),
    ("GET", "/v1/scopes/sec/readergroups/rg", None, needs(READ, _GROUP)),
    ("DELETE", "/v1/scopes/sec/readergroups/rg", None, needs(UPDATE, _GROUP)),
    ("GET", "/v1/health/details", None, needs(UPDATE, _ROOT)),
    ("GET", "/v1/health/details/x", None, needs(UPDATE, _ROOT)),
)

_HEALTH = ("health", "health/status", "health/readiness", "health/liveness")
OPEN = ("/ping", *(f"/v1/{path}{end}" for path in _HEALTH for end in ("", "/x")))
"""Whatever credentials come with it."""

_ID = "00000000-0000-0000-0000-000000000001"
_TXN = "/sluice/v1/scopes/sec/streams/st/transactions"
_LEASE = {"leaseMs": 20_000}
_FIXED = {"scaling": {"type": "fixed", "minSegments": 1}}
_TABLE_CONFIG = {"partitionCount": 1, "primaryKeyLength": 4}
_OF_STREAM: tuple[tuple[str, str, Any, int], ...] = (
    ("GET", "", None, READ),
    ("DELETE", "", None, UPDATE),
    ("POST", "/seal", None, UPDATE),
    ("POST", "/truncate", {"cut": {"0": 0}}, UPDATE),
    ("POST", "/scale", {"sealed": [0], "ranges": [[0.0, 1.0]]}, UPDATE),
    ("GET", "/scales/0", None, READ),
    ("GET", "/segments", None, READ),
    ("GET", "/segments/0/successors", None, READ),
    ("GET", "/segments/0/location", None, READ),
    ("GET", "/decisions", None, READ),
    ("GET", "/reports", None, READ),
    ("GET", "/statistics", None, READ),
    ("GET", "/topology", None, READ),
    ("GET", "/rates", None, READ),
    ("GET", "/rates/history", None, READ),
    ("GET", "/history", None, READ),
    ("POST", "/what-if", {"retention": {"type": "time", "min": 1}, "since": "-1h"}, READ),
    ("GET", "/commits", None, READ),
    ("GET", "/transactions/summary", None, READ),
    ("GET", "/transactions", None, READ),
    ("POST", "/transactions", _LEASE, UPDATE),
    ("GET", f"/transactions/{_ID}", None, READ),
    ("POST", f"/transactions/{_ID}/commit", {}, UPDATE),
    ("POST", f"/transactions/{_ID}/abort", None, UPDATE),
    ("POST", f"/transactions/{_ID}/ping", _LEASE, UPDATE),
)
_OF_ALL = (
    "/streams", "/streams/loads?name=sec/st", "/search?q=s", "/overview", "/overview/hour", "/decisions",
    "/transactions", "/journal", "/requests", "/demonstration",
)  # fmt: skip
_OURS: tuple[tuple[str, str, Any, Needs], ...] = (
    ("GET", "/scopes", None, needs(READ, _ROOT)),
    ("PUT", "/scopes/made", None, needs(UPDATE, _ROOT)),
    ("GET", "/scopes/sec", None, needs(READ, _SCOPE)),
    ("DELETE", "/scopes/sec", None, needs(UPDATE, _ROOT)),
    ("GET", "/scopes/sec/streams", None, needs(READ, _SCOPE)),
    ("PUT", "/scopes/sec/streams/st", _FIXED, needs(UPDATE, _SCOPE, _STREAM)),
    *((method, f"/scopes/sec/streams/st{end}", body, needs(level, _STREAM)) for method, end, body, level in _OF_STREAM),
    ("GET", "/scopes/sec/readergroups", None, needs(READ, _SCOPE)),
    ("GET", "/scopes/sec/readergroups/rg", None, needs(READ, _GROUP)),
    ("PUT", "/scopes/sec/readergroups/rg", {"config": {"streams": {"sec/st": {}}}}, needs(UPDATE, _SCOPE, _GROUP)),
    ("DELETE", "/scopes/sec/readergroups/rg", None, needs(UPDATE, _GROUP)),
    ("GET", "/scopes/sec/tables", None, needs(READ, _SCOPE)),
    ("GET", "/scopes/sec/tables/kv", None, needs(READ, _TABLE)),
    ("GET", "/scopes/sec/tables/kv/size", None, needs(READ, _TABLE)),
    ("PUT", "/scopes/sec/tables/kv", _TABLE_CONFIG, needs(UPDATE, _SCOPE, _TABLE)),
    ("DELETE", "/scopes/sec/tables/kv", None, needs(UPDATE, _TABLE)),
    ("GET", "/scopes/sec/streams/st/events", None, needs(READ, _STREAM)),
    ("GET", "/scopes/sec/tables/kv/entries", None, needs(READ, _TABLE)),
    ("GET", "/scopes/sec/readergroups/rg/readers", None, needs(READ, _GROUP)),
    *(("GET", path, None, needs(READ, _ROOT)) for path in _OF_ALL),
    ("POST", "/demonstration", None, needs(UPDATE, _ROOT)),
    ("DELETE", "/demonstration", None, needs(UPDATE, _ROOT)),
    ("GET", "/about", None, needs(0)),
    ("GET", "/me", None, needs(0)),
    ("POST", "/session", None, needs(0)),
    ("GET", "/requests/0123456789-1", None, needs(READ, _ROOT)),
    ("GET", "/events?of=stream:sec/st&count=1", None, needs(0, _STREAM)),
    ("GET", "/partitions", None, needs(READ, On.CLUSTER)),
    ("GET", "/containers/history", None, needs(READ, On.CLUSTER)),
    ("GET", "/members/history", None, needs(READ, On.CLUSTER)),
    ("POST", "/workflows/retry-each", {"aggregates": ["stream:sec/st"]}, needs(UPDATE, On.WORKFLOWS)),
    ("GET", "/workflows", None, needs(READ, On.WORKFLOWS)),
    ("POST", "/workflows/retry", {"aggregate": "stream:sec/st"}, needs(UPDATE, On.WORKFLOWS)),
    ("POST", "/workflows/cancel", {"aggregate": "stream:sec/st"}, needs(UPDATE, On.WORKFLOWS)),
    ("GET", "/containers", None, needs(READ, On.CLUSTER)),
    ("POST", "/containers/drain", {"store": "none:1"}, needs(UPDATE, On.CLUSTER)),
    ("POST", "/containers/undrain", {"store": "none:1"}, needs(UPDATE, On.CLUSTER)),
    ("POST", "/containers/rebalance", None, needs(UPDATE, On.CLUSTER)),
    ("GET", "/members", None, needs(READ, On.CLUSTER)),
    ("GET", "/dead-letters", None, needs(READ, On.DEAD_LETTERS)),
    ("GET", "/dead-letters/0/0", None, needs(READ, On.DEAD_LETTERS)),
    ("POST", "/dead-letters/0/0/replay", None, needs(UPDATE, On.DEAD_LETTERS)),
    ("POST", "/dead-letters/0/0/drop", None, needs(UPDATE, On.DEAD_LETTERS)),
)


def _calls() -> Iterator[Operation]:
    for method, path, body, needed in _PRAVEGAS:
        yield call_of(method, path, body, needed)
    for method, path, body, needed in _OURS:
        yield call_of(method, f"/sluice/v1{path}", body, needed, is_own=True)


def call_of(method: str, path: str, body: Any, needed: Needs, *, is_own: bool = False) -> Operation:
    return Operation(
        f"{method} {path}",
        lambda client, authorization: client.http(method, path, body, authorization),
        needed,
        is_own=is_own,
    )


CALLS: tuple[Operation, ...] = tuple(_calls())
