"""The nodes that an original reads when it starts: what it looks at now and then, and no request of before.

Rules: controller-metadata-store 3 and 8. Blocking.
"""

from base64 import b64decode, b64encode
from collections.abc import Collection

from sluice_cli.migration.raw import Nodes

COMPLETED_GUARD = "garbagecollection/completedTxnGC/guard"
"""The version of its data is the number of the present batch of completed transactions."""
INDEXES = ("hostRequestIndex", "hostTxnIndex", "hostTaskIndex", "taskIndex")
"""Work of controllers that have ended, which one that starts would do again."""
BUCKETS = {"buckets": 1, "watermarks": 100}
"""Where streams are listed that are looked at, and in how many buckets if an original has not said so."""


def write_nodes(nodes: Nodes, retained: Collection[str], watermarked: Collection[str], kept: Collection[str]) -> int:
    """Make them fit these streams, `scope/stream`; the `kept` ones stay listed. How many did not fit."""
    changes = 0
    for index in INDEXES:
        for child in nodes.children(index):
            nodes.delete(f"{index}/{child}")
            changes += 1
    for (top, usual), streams in zip(BUCKETS.items(), (retained, watermarked), strict=True):
        buckets = [int(child) for child in nodes.children(top) if child.isdecimal()]
        if not buckets:
            buckets = [usual - 1]
            nodes.put(f"{top}/{usual - 1}")
        wanted = {f"{top}/{_bucket(stream, max(buckets) + 1)}/{_name(stream)}" for stream in streams}
        there = {f"{top}/{bucket}/{child}": child for bucket in buckets for child in nodes.children(f"{top}/{bucket}")}
        for path in sorted(wanted - there.keys()):
            nodes.put(path)
            changes += 1
        for path, child in there.items():
            if path not in wanted and b64decode(child).decode() not in kept:
                nodes.delete(path)
                changes += 1
    return changes


def _name(stream: str) -> str:
    return b64encode(stream.encode()).decode()


def _bucket(stream: str, count: int) -> int:
    """By Java's hash code of the text; names have only ASCII letters."""
    code = 0
    for letter in stream:
        code = code * 31 + ord(letter) & 0xFFFFFFFF
    return (code & 0x7FFFFFFF) % count
