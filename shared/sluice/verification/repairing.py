"""What of a finding may be repaired, and why, or why not.

A repair carries out once more what the journal has decided for good: a seal, a truncation, a deletion. Names are used
once, so such a decision is never taken back, and a late repair does no harm: it is what a late step of a workflow does,
too. Nothing is created: an empty segment in the place of a missing one would make lost data look like none.
"""

from enum import StrEnum

import msgspec

from sluice.domain.ids import TableId
from sluice.pravega.store import SegmentInfo, SegmentStore
from sluice.verification.comparing import Info, Problem
from sluice.verification.expected import Deletion, Expected
from sluice.verification.subjects import Subject, TransactionSegment


class Operation(StrEnum):
    SEAL = "sealed"
    TRUNCATE = "truncated"
    DELETE = "deleted"
    DELETE_IF_EMPTY = "sealed, and deleted if empty"
    NOTHING = "not repaired"


class Repair(msgspec.Struct, frozen=True):
    operation: Operation
    reason: str


class NotEmptyError(Exception):
    """The segment has data, or may still get some."""


_REFUSED = {
    Problem.MISSING: "a new empty segment would make lost data look like none, and break positions that lie in it",
    Problem.SEALED: (
        "a seal cannot be taken back; a byte stream's client may have sealed it. "
        "Of an event stream replace it with `sluice stream scale --seal`"
    ),
    Problem.OTHER_LENGTH: "no operation changes what a sealed segment holds",
    Problem.TOO_SHORT: "the data behind its end is in no store that answers",
    Problem.STARTS_LATE: "what was truncated is gone; `sluice stream truncate` moves the head there",
    Problem.OTHER_KEYS: "a table segment keeps the key length that it was created with",
}


_REFUSED_OF_TRANSACTIONS = {
    Problem.MISSING: "a commit would take it as merged; abort the transaction if it is open",
    Problem.SEALED: "a seal cannot be taken back: its writers fail; abort the transaction if it is open",
    Problem.OTHER_LENGTH: "no client was given the transaction, so what wrote to it is not known",
}


def repair_of(subject: Subject, problem: Problem, expected: Expected, info: Info | None) -> Repair:
    """The one that is safe; `Operation.NOTHING` with the reason if there is none."""
    if problem is Problem.NOT_SEALED and isinstance(info, SegmentInfo):
        if info.length < (expected.length or 0):
            return _refuse("it is shorter than recorded: find the missing data before it is sealed there")
        return Repair(Operation.SEAL, "the journal has it as sealed for good, and names its successors")
    if problem is Problem.STARTS_EARLY:
        return Repair(Operation.TRUNCATE, "the head of its stream lies there for good")
    if problem is Problem.LEFT_OVER:
        return _deletion(expected, info)
    if isinstance(subject, TransactionSegment):
        return _refuse(_REFUSED_OF_TRANSACTIONS[problem])
    return _refuse(_REFUSED[problem])


def _deletion(expected: Expected, info: Info | None) -> Repair:
    if expected.deletion is Deletion.ALWAYS:
        return Repair(
            Operation.DELETE, "the journal has decided its deletion for good, and its name is never used again"
        )
    if isinstance(info, SegmentInfo) and info.length:
        return _refuse(f"it has {info.length} bytes, which may be in no other segment: read them before you delete it")
    return Repair(Operation.DELETE_IF_EMPTY, "nothing can be written to it once it is sealed, and nothing was")


def _refuse(reason: str) -> Repair:
    return Repair(Operation.NOTHING, reason)


async def carry_out(store: SegmentStore, subject: Subject, operation: Operation, expected: Expected) -> None:
    """One attempt. Raises SegmentStoreError, NotEmptyError."""
    if operation is Operation.SEAL:
        await store.seal_segment(subject.name)
    elif operation is Operation.TRUNCATE:
        await store.truncate_segment(subject.name, expected.start_from)
    elif isinstance(subject.of, TableId):
        await store.delete_table_segment(subject.name)
    else:
        if operation is Operation.DELETE_IF_EMPTY:
            await _seal_empty(store, subject.name)
        await store.delete_segment(subject.name)


async def _seal_empty(store: SegmentStore, name: str) -> None:
    """Only *sealed, and of length 0* proves that it is empty; see docs/commits.md."""
    await store.seal_segment(name)
    info = await store.segment_info(name)
    if not info.sealed or info.length:
        raise NotEmptyError(f"it has {info.length} bytes")
