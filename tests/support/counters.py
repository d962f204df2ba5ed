"""A domain of ten lines for tests of the engine: counters that are added to, and work that one may be doing."""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

import msgspec

from sluice.engine.decision import Context, Decision, Reader
from sluice.engine.record import Entry, Record


class Kind(Enum):
    TIDY = "tidy"
    OTHER = "other"


class Work(msgspec.Struct):
    """See Running of the engine."""

    kind: Kind
    id: str
    since: int = 0
    request: str | None = None
    retry_requests: int = 0
    cancelled: bool = False


class Counter(msgspec.Struct):
    name: str
    total: int = 0
    work: Work | None = None
    dropped: bool = False


class Event(msgspec.Struct, frozen=True, tag=True):
    aggregate: str


class Added(Event, frozen=True):
    by: int = 1


class Dropped(Event, frozen=True):
    """The counter changes no more, and is forgotten at the next opportunity."""


class WorkStarted(Event, frozen=True):
    id: str = "w"
    kind: Kind = Kind.TIDY
    since: int = 0


class WorkFailed(Event, frozen=True):
    step: str
    attempts: int
    error: str


class WorkRetried(Event, frozen=True):
    pass


class WorkCancelled(Event, frozen=True):
    pass


class WorkEnded(Event, frozen=True):
    pass


AnyEvent = Added | Dropped | WorkStarted | WorkFailed | WorkRetried | WorkCancelled | WorkEnded
CounterEntry = Entry[AnyEvent, str]
CounterRecord = Record[AnyEvent, str]

_decoder = msgspec.json.Decoder(CounterRecord)


class CounterModel:
    """See Model and WorkflowRules of the engine. An aggregate is its key, or the key with more behind a colon."""

    def evolve(self, state: Counter | None, event: AnyEvent) -> Counter:
        state = state or Counter(event.aggregate)
        match event:
            case Added(by=by):
                state.total += by
            case WorkStarted(id=id, kind=kind, since=since):
                state.work = Work(kind, id, since)
            case WorkRetried() if state.work is not None:
                state.work.retry_requests += 1
            case WorkCancelled() if state.work is not None:
                state.work.cancelled = True
            case WorkEnded():
                state.work = None
            case Dropped():
                state.dropped = True
        return state

    def project(self, _projections: dict[str, Any], _event: AnyEvent, _state: Any, _offset: int) -> Iterable[str]:
        return ()

    def retire(self, projections: dict[str, Any], aggregate: str, version: int, state: Counter | None) -> bool:
        """Dropped counters, each with its version and its total."""
        if state is None or not state.dropped:
            return False
        projections.setdefault(self.projection_of(aggregate), {})[aggregate] = (version, state.total)
        return True

    def retired(self, projections: dict[str, Any], aggregate: str) -> tuple[int, Counter | None]:
        found = projections.get(self.projection_of(aggregate), {}).get(aggregate)
        return (found[0], Counter(aggregate, found[1], dropped=True)) if found is not None else (0, None)

    def projection_of(self, _aggregate: str) -> str:
        return "dropped"

    def is_empty(self, _projection: Any) -> bool:
        return False

    def forget(self, projection: Any, _now_ms: int) -> None:
        """All that were dropped."""
        projection.clear()

    def is_under_way(self, state: Counter | None) -> bool:
        return self.running(state) is not None

    def encode_state(self, state: Counter) -> bytes:
        return msgspec.json.encode(state)

    def decode_state(self, value: bytes) -> Counter:
        return msgspec.json.decode(value, type=Counter)

    def encode_projection(self, _name: str, projection: Any) -> bytes:
        return msgspec.json.encode(projection, order="sorted")

    def decode_projection(self, _name: str, value: bytes) -> Any:
        return msgspec.json.decode(value, type=dict[str, tuple[int, int]])

    def encode(self, record: CounterRecord) -> bytes:
        return msgspec.json.encode(record)

    def decode(self, value: bytes) -> CounterRecord:
        return _decoder.decode(value)

    def key_of(self, aggregate: str) -> str:
        return aggregate.partition(":")[0]

    def running(self, state: Counter | None) -> Work | None:
        return state.work if state is not None else None

    def is_cancelled(self, state: Counter) -> bool:
        """A counter that has counted is beyond its point of no return."""
        return state.work is not None and state.work.cancelled and state.total == 0

    def cancel(self, reader: Reader, _context: Context, state: Counter) -> Decision:
        reader.get(state.name)
        return Decision((WorkEnded(state.name),), "cancelled")

    def step_failed(
        self, reader: Reader, aggregate: str, _kind: Kind, step: str, attempts: int, error: str
    ) -> Decision:
        reader.get(aggregate)
        return Decision((WorkFailed(aggregate, step, attempts, error),))


def add(name: str, by: int = 1) -> Callable[[Reader, Context], Decision]:
    """Add to a counter; the reply is what it was."""

    def decide(reader: Reader, _context: Context) -> Decision:
        counter = reader.get(name)
        return Decision((Added(name, by),), str(counter.total if counter is not None else 0))

    return decide


def entry(*events: AnyEvent, expect: dict[str, int] | None = None, **more: Any) -> CounterEntry:
    return Entry(expect or {}, events, **more)


def record(*entries: CounterEntry, id: str = "1", **more: Any) -> CounterRecord:
    return Record(id, 0, "test", entries, **more)
