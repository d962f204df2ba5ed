"""What the API answers in the tests of commands."""

from typing import Any

from unit.cli.conftest import problem

NO_STREAM = problem(404, "stream demo/orders does not exist", "STREAM_NOT_FOUND")
FIXED = {"type": "fixed", "targetRate": 0, "scaleFactor": 0}
CONFIG: dict[str, Any] = {
    "scaling": {**FIXED, "minSegments": 2},
    "tags": ["red"],
    "rolloverSizeBytes": 0,
    "timestampAggregationTimeout": 0,
}
WORKFLOW = {
    "id": "scale-stream-1700000000000", "kind": "scale-stream", "step": "seal-replaced", "since": 1_700_000_000_000,
    "attempts": 4, "lastError": "ContainerNotFound", "retryRequests": 0, "cancelled": False,
}  # fmt: skip
SEGMENTS: list[dict[str, Any]] = [
    {"id": 0, "number": 0, "epoch": 0, "low": 0.0, "high": 0.5, "container": 1, "store": "127.0.0.1:12345"},
    {"id": 1, "number": 1, "epoch": 0, "low": 0.5, "high": 1.0, "container": 2},
]
STREAM: dict[str, Any] = {
    "scope": "demo", "name": "orders", "state": "SCALING", "epoch": 0, "createdAt": 1_700_000_000_000,
    "config": {**CONFIG, "retention": {"type": "time", "min": 3_600_000, "max": 172_800_000}},
    "segments": SEGMENTS, "headCut": {"0": 17}, "truncatedBytes": 2048, "workflow": WORKFLOW,
    "waiting": {"kind": "seal-stream", "at": 1_700_000_000_001},
    "transactions": {"open": 3, "waiting": 2, "aborting": 1, "ended": 4, "endedKeptMs": 172_800_000},
    "subscribers": [{"name": "demo/rg", "groupId": "g", "generation": 0, "updatedAt": 1, "cut": {"0": 99}}],
    "decisions": [{"kind": "scale", "code": "split", "reason": "twice the target", "at": 1_700_000_000_002}],
    "markStream": "_MARKorders", "watermark": {"lower": 5, "upper": 6, "at": 1_700_000_000_003},
}  # fmt: skip
ONE = "/scopes/demo/streams/orders"
TXN = "00000000-0000-0000-0102-030405060708"
GROUP_CONFIG = {
    "streams": {"demo/orders": {"start": {"0": 5}}}, "retention": "manual", "refreshMs": 3000,
    "checkpointIntervalMs": 30_000, "maxOutstandingCheckpoints": 3,
}  # fmt: skip
GROUP = {
    "scope": "demo", "name": "rg", "id": "g-1", "generation": 4, "state": "ACTIVE", "createdAt": 1_700_000_000_000,
    "config": GROUP_CONFIG,
}  # fmt: skip
TABLE_CONFIG = {"partitionCount": 2, "primaryKeyLength": 16, "secondaryKeyLength": 4, "rolloverSizeBytes": 0}
TABLE = {
    "scope": "demo", "name": "kv", "state": "ACTIVE", "createdAt": 1_700_000_000_000, "config": TABLE_CONFIG,
    "segments": [{"id": 0, "low": 0.0, "high": 1.0}],
}  # fmt: skip
LETTER = {
    "partition": 3, "offset": 17, "topic": "sluice.commit", "key": "demo/orders", "reason": "KeyError('x')",
    "service": "txn-manager/c", "at": 1_700_000_000_000, "value": "{broken", "encoding": "text",
}  # fmt: skip
WHAT_IF: dict[str, Any] = {
    "kind": "scale", "since": 1_699_999_200_000, "until": 1_700_000_100_000,
    "happened": [{"at": 1_700_000_000_000, "code": "steady", "reason": "calm", "segments": 2}],
    "would": [
        {"at": 1_700_000_000_100, "code": "split", "reason": "hot", "segments": 4, "acts": True},
        {"at": 1_700_000_000_200, "code": "cooling-down", "reason": "in passing", "segments": 4, "passing": True},
    ],
    "firstDifference": 1_700_000_000_000, "notes": ["it holds up to there"],
    "kept": {"at": [1_700_000_000_000], "happened": [2048], "would": [1024]},
}  # fmt: skip


def items(*found: Any) -> dict[str, Any]:
    return {"items": list(found)}
