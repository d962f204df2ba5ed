"""What the engine needs of the outside: a log, requests, a clock, and a model of what the events mean.

`sluice.kafka` has these on Kafka, `sluice.memory` in memory; one suite of tests runs over both.
"""

import asyncio
import random
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from sluice.engine.record import RequestPosition

Ends = dict[int, int]
"""For each partition whose end is known the offset of the next record that will be appended to it."""


class Message(Protocol):
    """A record as a consumer gets it: as much of confluent_kafka's `Message` as is looked at here."""

    def topic(self) -> Any: ...

    def partition(self) -> Any: ...

    def offset(self) -> Any: ...

    def key(self) -> Any: ...

    def value(self) -> Any: ...

    def timestamp(self) -> tuple[int, int]:
        """The type of the time, and when the broker appended the record, in epoch ms."""
        ...

    def headers(self) -> Any: ...

    def leader_epoch(self) -> Any:
        """Under which leader of the partition the record was appended: it grows with every change; None if unknown."""
        ...

    def error(self) -> Any:
        """None for a record; else the event that says that a partition was read to its end."""
        ...


class SendError(Exception):
    """The record was not acknowledged in time: it may or may not be in the topic."""


class SendQueueFullError(SendError):
    """More records wait for acknowledgement than the queue may hold."""


class RecordTooLargeError(SendError):
    """The record is larger than any topic takes: sending it a second time is no use."""


class EndsUnknownError(Exception):
    """Where the partitions end could not be learned: the log is away."""


def end_of(ends: Ends, partition: int) -> int:
    """Raises EndsUnknownError for a partition that did not answer."""
    end = ends.get(partition)
    if end is None:
        raise EndsUnknownError(f"partition {partition} does not answer")
    return end


class RecordFacts(msgspec.Struct, frozen=True):
    """What a record says of itself outside its value: type, id, sender, and the sender's time in epoch ms."""

    kind: str
    id: str
    by: str
    at: int


class Log(Protocol):
    """An ordered, partitioned log that this process follows and appends to."""

    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> int: ...

    @property
    def failure(self) -> str | None:
        """Why the log cannot be followed any further, in words; None while it can."""
        ...

    def start(self, on_batch: Callable[[Sequence[Message]], None], begin: Mapping[int, int]) -> None:
        """Follow these partitions, each from this offset on; batches come on the event loop, in order in a partition.

        A partition whose records there are trimmed is followed from the first one that is left. Called a second time,
        it ends what was followed before.
        """
        ...

    async def stop(self) -> None: ...

    def append(
        self,
        key: str,
        value: bytes,
        facts: RecordFacts,
        carrier: Mapping[str, str],
        failed: Callable[[SendError], None],
    ) -> None:
        """Append to the key's partition; `failed(error)` is called on the loop if it was not acknowledged.

        `carrier` are headers of the trace. Raises SendError for what fails at once.
        """
        ...

    def ends(self, partitions: Collection[int] | None = None) -> asyncio.Future[Ends]:
        """Where these partitions end, all if none are given, at some time after this call.

        There may be others, too. Those that do not answer are missing; fails with EndsUnknownError if none does.
        """
        ...

    async def trim(self, before: Mapping[int, int], appended_before_ms: int) -> Ends:
        """Remove the records of these partitions below the offset that were appended before that time, in epoch ms.

        Returns where each of them begins now. Raises EndsUnknownError if the log does not answer; what was removed then
        is open.
        """
        ...


class SnapshotStoreError(Exception):
    """The store of snapshots did not answer in time."""


class SnapshotReader(Protocol):
    """Two lists of each partition that grow at their ends: notes, which are small, and chunks. Both have offsets.

    What they mean is in `sluice.engine.snapshots`. All methods raise SnapshotStoreError.
    """

    async def notes(self, partitions: Collection[int]) -> dict[int, list[tuple[int, bytes]]]:
        """All notes of each partition with their offsets, in order: at least those appended before this call."""
        ...

    async def chunks(self, partition: int, first: int, last: int) -> list[bytes]:
        """What is left of the chunks from the first to the last offset, both included."""
        ...


class SnapshotStore(SnapshotReader, Protocol):
    """The same, to be written to."""

    async def append_note(self, partition: int, value: bytes, facts: RecordFacts) -> None:
        """Returns when it is stored."""
        ...

    async def append_chunk(self, partition: int, value: bytes, facts: RecordFacts) -> int:
        """Returns its offset when it is stored."""
        ...

    async def trim(self, partition: int, notes_before: int, chunks_before: int) -> None:
        """Remove what stands below these offsets."""
        ...


class SourceListener(Protocol):
    """The receiver of requests. All but `positions` are called on the event loop."""

    def assigned(self, partitions: list[int]) -> None: ...

    def revoked(self, partitions: list[int]) -> None: ...

    def lost(self, partitions: list[int]) -> None:
        """The group has gone on without this member, which joins it anew by itself."""
        ...

    def received(self, batch: Sequence[Message]) -> None: ...

    def positions(self) -> Mapping[int, RequestPosition]:
        """For each owned partition the first offset that is not acknowledged, behind the leader epoch of what is.

        Called from any thread.
        """
        ...


class RequestSource(Protocol):
    """A topic of requests, of which this process gets some partitions as the member of a group."""

    @property
    def topic(self) -> str: ...

    @property
    def failure(self) -> BaseException | None: ...

    def start(self, listener: SourceListener) -> None: ...

    async def stop(self) -> None:
        """Commit what is acknowledged and leave the group."""
        ...

    def commit(self) -> bool:
        """Have the listener's positions committed soon; says whether any was not, so that a failure is tried again.

        The next owner begins at what was committed, or where the requests of that leader epoch end, if that is earlier.
        """
        ...

    def pause(self, partitions: Collection[int]) -> None:
        """From now on exactly these of the owned partitions are paused."""
        ...

    async def identity(self) -> str:
        """The topic's name with its id, which a topic made anew does not share. Raises EndsUnknownError."""
        ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """Epoch ms."""
        ...


class SystemClock:
    def now_ms(self) -> int:
        """See Clock."""
        return time.time_ns() // 1_000_000


class Chance(Protocol):
    """Where ids and the jitter of pauses come from."""

    def token(self) -> str:
        """A few characters that no other process has."""
        ...

    def jitter(self, low: float, high: float) -> float: ...


class SystemChance:
    def token(self) -> str:
        """See Chance."""
        return secrets.token_hex(5)

    def jitter(self, low: float, high: float) -> float:
        """See Chance."""
        return random.uniform(low, high)


class Model(Protocol):
    """What the events mean. All of it is pure, and alike in every process."""

    def evolve(self, state: Any, event: Any) -> Any:
        """The state after the event; the given one may be changed in place."""
        ...

    def project(self, projections: dict[str, Any], event: Any, state: Any, offset: int) -> Iterable[str]:
        """Bring what is stored about several aggregates up to date; names the aggregates not needed any more.

        `state` is what the event has made of its aggregate.
        """
        ...

    def retire(self, projections: dict[str, Any], aggregate: str, version: int, state: Any) -> bool:
        """Whether a projection takes the place of an aggregate, for no event changes that any more."""
        ...

    def retired(self, projections: dict[str, Any], aggregate: str) -> tuple[int, Any]:
        """Version and state of an aggregate that is retired; 0 and None for any other one."""
        ...

    def forget(self, projection: Any, now_ms: int) -> None:
        """Have a projection forget what is old by the log's time."""
        ...

    def is_empty(self, projection: Any) -> bool:
        """Whether a projection may go, for one that is made anew is like it."""
        ...

    def is_under_way(self, state: Any) -> bool:
        """Whether a workflow is changing an aggregate of this state, or waits to."""
        ...

    def encode_state(self, state: Any) -> bytes:
        """The state of an aggregate, which is not None: the same bytes in every process for states that are alike."""
        ...

    def decode_state(self, value: bytes) -> Any:
        """The state of these bytes. Raises msgspec.MsgspecError or ValueError."""
        ...

    def encode_projection(self, name: str, projection: Any) -> bytes:
        """The projection of that name, in the same way."""
        ...

    def decode_projection(self, name: str, value: bytes) -> Any:
        """See `decode_state`."""
        ...

    def encode(self, record: Any) -> bytes: ...

    def decode(self, value: bytes) -> Any:
        """The record (`sluice.engine.record.Record`). Raises msgspec.DecodeError or msgspec.ValidationError."""
        ...


class PartitionProgress(msgspec.Struct, frozen=True):
    """A partition of requests: its owner's client id, "" without one, and how many records are not acknowledged.

    `end` is the offset of the next record, `oldest_ms` how long ago the broker took the oldest one that is open: None
    if none is.
    """

    topic: str
    partition: int
    owner: str
    lag: int
    end: int
    oldest_ms: int | None


class GroupProgress(Protocol):
    """How far those are that read requests."""

    def fetch(self, now_ms: int) -> list[PartitionProgress]:
        """All there is to say; blocks."""
        ...

    def close(self) -> None:
        """Hold no connections until the next question."""
        ...


class TopicUnreadableError(Exception):
    """Not all that a topic holds has come."""


class NotLeaderError(Exception):
    """Another instance leads, or Kafka does not say who does."""


class Terms(Protocol):
    """When this instance is the one that decides by policies, and how far those before it were."""

    @property
    def term(self) -> int:
        """The number of this instance's term; 0 while it does not lead."""
        ...

    def problem(self) -> str | None:
        """Why it is not known whether it leads."""
        ...

    def start(self) -> None: ...

    async def stop(self) -> None:
        """Another instance leads at once."""
        ...

    async def read_positions(self, topic: str, partitions: int) -> Mapping[int, int]:
        """Up to where the reports of the topic are in what is remembered, as far as that was saved, by partition.

        Raises NotLeaderError.
        """
        ...

    async def save_positions(self, term: int, topic: str, positions: Mapping[int, int]) -> None:
        """Raises NotLeaderError unless the term lasts."""
        ...


Room = asyncio.Future[None] | None
"""What a taker of records answers: done once there is room for more of them; None: there is."""


class Following(Protocol):
    """Has what lands in a topic handed over, until it is stopped; `failure` is what ended it by itself."""

    @property
    def failure(self) -> BaseException | None: ...

    async def stop(self) -> None: ...
