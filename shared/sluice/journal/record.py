"""One record of the journal: an atomic batch of events on aggregates of one partition."""

import msgspec

from sluice.domain.decision import Reply
from sluice.domain.events import Event

CLOCKS_MS = 10_000
"""How far the clocks of brokers may differ; to make a topic anew takes longer."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where a request stands in its topic's partition, and when the broker appended it there, epoch ms."""

    offset: int
    at: int

    def is_behind(self, other: "Place") -> bool:
        """Whether this one comes later. A topic that begins anew has lower offsets, but later times."""
        return self.offset > other.offset or self.at > other.at + CLOCKS_MS

    def after(self, last: "Place | None") -> "Place":
        """The last place with this one: it does not go back, nor does its time where brokers' clocks differ."""
        if last is None or not self.is_behind(last):
            return last or self
        return self if self.at >= last.at else Place(self.offset, last.at)


class Record(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """`at` in epoch ms at the proposer, `by` its service/instance. It holds no cycles, so the collector need not look.

    `expect` guards aggregates by the versions the decision was taken on; `request` is the request that the record
    belongs to, `reply` its answer. `answers` are those of other requests, which could be decided again without harm:
    they are told, but not remembered. `place` is that of the request, if those of its key are decided in their order;
    then the first aggregate that is expected is the one that the request is about.
    """

    id: str
    at: int
    by: str
    expect: dict[str, int]
    request: str | None = None
    events: tuple[Event, ...] = ()
    reply: Reply | None = None
    answers: dict[str, Reply] = {}
    place: Place | None = None


def record_type(record: Record) -> str:
    """What a record says it is, for the headers: its first event, or that there is none."""
    return type(record.events[0]).__name__ if record.events else "Refusal"


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Record)


def encode_record(record: Record) -> bytes:
    return _encoder.encode(record)


def decode_record(value: bytes) -> Record:
    """Raises msgspec.DecodeError or msgspec.ValidationError for what is not a record."""
    return _decoder.decode(value)
