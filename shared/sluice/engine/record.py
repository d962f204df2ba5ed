"""One record of the journal: a batch of entries, each an atomic decision on aggregates of one partition.

Each entry counts or is void by itself. Requests that arrive together share a record, and nothing else.
"""

from typing import Any, Generic, TypeVar

import msgspec

from sluice.engine.formats import FIRST_FORMAT

EventT = TypeVar("EventT")
ReplyT = TypeVar("ReplyT")


class Source(msgspec.Struct, frozen=True, gc=False):
    """Where the request stands that an entry decides: `topic` is its name and id, the partition that of the record.

    `epoch` is the leader epoch under which it was appended.
    """

    topic: str
    epoch: int
    offset: int

    @property
    def position(self) -> "RequestPosition":
        return self.epoch, self.offset


class Entry(msgspec.Struct, Generic[EventT, ReplyT], frozen=True, omit_defaults=True, gc=False):
    """`expect` guards aggregates by the versions the decision was taken on.

    `request` is the id of the request that `reply` goes to. Only the entry that decides a request has its `source`;
    what its workflow records later does not. `principal` is whom that request was sent for, empty if unknown; nothing
    is decided by it.
    """

    expect: dict[str, int] = {}
    events: tuple[EventT, ...] = ()
    request: str | None = None
    reply: ReplyT | None = None
    source: Source | None = None
    principal: str = ""


RequestPosition = tuple[int, int]
"""A position in a partition of requests: the leader epoch under which it was appended, and the offset.

In a log epochs do not fall as offsets rise. So a position is behind all others that were ever appended before it, also
where the topic has lost its end and offsets are used a second time.
"""


class Marker(msgspec.Struct, frozen=True, gc=False):
    """Makes its record's offset one at which followers compare their outcome hashes, and of which a snapshot is made.

    A proposer does not know at which offset its record will stand. So it says what it found at the marker before this
    one: `previous` is that one's offset, -1 without one, and `outcome_hash` its own hash behind it, in hex digits.
    Only followers of the same `format` compare.
    """

    format: int
    previous: int = -1
    outcome_hash: str = ""


HELD = 2**53
"""A `whole_at` that no partition reaches: it is held until a later record says otherwise."""


class Record(msgspec.Struct, Generic[EventT, ReplyT], frozen=True, omit_defaults=True, gc=False):
    """`at` in epoch ms at the proposer, `by` its service/instance. It holds no cycles, so the collector need not look.

    `floors` says for topics of requests (name and id, see Source) below which position all of the partition's requests
    are decided, as far as the proposer has seen. A record with a `marker` has no entries. With `whole_at` it begins
    what a restore has written: nobody may go by the partition before all records up to this offset are folded; the
    last one that says so counts. `format` says which releases may fold it (see `sluice.engine.formats`).
    """

    id: str
    at: int
    by: str
    entries: tuple[Entry[EventT, ReplyT], ...] = ()
    floors: dict[str, RequestPosition] = {}
    marker: Marker | None = None
    whole_at: int = 0
    format: int = FIRST_FORMAT


def record_kind(record: Record[Any, Any]) -> str:
    """What a record says it is, for the headers: its first event, or what it has without one."""
    if record.marker is not None:
        return "Marker"
    for entry in record.entries:
        if entry.events:
            return type(entry.events[0]).__name__
    return "Hold" if record.whole_at else "Refusal"
