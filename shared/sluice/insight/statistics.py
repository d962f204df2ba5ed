"""Statistics of streams: what is counted of the journal's events, and how reports become windows.

A partition's owner counts what happens to its streams, per stream and minute, and reports the figures every few
seconds. One fold adds the reports up to windows of a minute, an hour and a day. The figures are approximate: a report
may be sent twice, and what happens while a partition changes hands may be missed or counted twice.

A *progress record* stands in the topic behind the reports of a partition. Once it is folded, all that was reported
until its time is in the windows; so readers learn how old the figures are, even where nothing happens.
"""

from enum import StrEnum
from typing import Any

import msgspec

from sluice.domain.decision import Reader
from sluice.domain.events import Event
from sluice.domain.ids import StreamId
from sluice.domain.names import base_name
from sluice.domain.stream.events import (
    StreamCreated,
    StreamDeleted,
    StreamEvent,
    StreamScaled,
    StreamSealed,
    StreamTruncated,
    StreamUpdated,
)
from sluice.domain.transaction.commands import AbortReason
from sluice.domain.transaction.events import (
    TransactionAborted,
    TransactionAborting,
    TransactionCommitted,
    TransactionCommitting,
    TransactionOpened,
)
from sluice.domain.transaction.state import EndedTransaction, Transaction

MINUTE_MS = 60_000


class Operation(StrEnum):
    """What was done to a stream as a whole."""

    CREATE = "create"
    UPDATE = "update"
    SCALE = "scale"
    TRUNCATE = "truncate"
    SEAL = "seal"
    DELETE = "delete"


class WindowKind(StrEnum):
    """Tumbling windows of UTC: each begins where the one before it ends."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"

    @property
    def length_ms(self) -> int:
        return _WINDOWS[self][0]

    @property
    def retained(self) -> int:
        """How many windows until one expires."""
        return _WINDOWS[self][1]

    def begin(self, at: int) -> int:
        """Where the window begins that a time belongs to; epoch ms."""
        return at - at % self.length_ms


_WINDOWS = {
    WindowKind.MINUTE: (MINUTE_MS, 120),
    WindowKind.HOUR: (60 * MINUTE_MS, 48),
    WindowKind.DAY: (24 * 60 * MINUTE_MS, 31),
}


class Figures(msgspec.Struct, frozen=True, omit_defaults=True):
    """How many transactions were opened, committed and aborted, how long those took that ended, and what was done.

    `timed` is the number of transactions that ended and whose opening is known: they were open, or waiting for their
    end, for `total_ms` together, the longest of them for `longest_ms`.
    """

    opened: int = 0
    committed: int = 0
    aborted: dict[AbortReason, int] = {}
    timed: int = 0
    total_ms: int = 0
    longest_ms: int = 0
    operations: dict[Operation, int] = {}

    def plus(self, other: "Figures") -> "Figures":
        """Those of both together."""
        return Figures(
            opened=self.opened + other.opened,
            committed=self.committed + other.committed,
            aborted=_sums(self.aborted, other.aborted),
            timed=self.timed + other.timed,
            total_ms=self.total_ms + other.total_ms,
            longest_ms=max(self.longest_ms, other.longest_ms),
            operations=_sums(self.operations, other.operations),
        )


def _sums(one: dict[Any, int], other: dict[Any, int]) -> dict[Any, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


class StreamStatistics(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """What happened to a stream since the report before, within the minute that begins at `minute`; epoch ms."""

    id: str
    by: str
    at: int
    scope: str
    stream: str
    minute: int
    figures: Figures

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)


class StatisticsProgress(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """What the owner of a partition had counted until `at` (epoch ms) stands before this."""

    id: str
    by: str
    at: int
    partition: int


class WindowStatistics(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """What happened to a stream in the window that begins at `begin`; the last report in it was sent at `at`.

    Times in epoch ms; `id` is that of this report, `offset` is where it stood in its partition.
    """

    id: str
    by: str
    at: int
    scope: str
    stream: str
    window: WindowKind
    begin: int
    offset: int
    figures: Figures

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)

    @property
    def key(self) -> str:
        return window_key(self.stream_id, self.window, self.begin)


Reported = StreamStatistics | StatisticsProgress
"""What `sluice.statistics` holds."""

Folded = WindowStatistics | StatisticsProgress
"""What `sluice.statistics.windows` holds."""


def window_key(stream: StreamId, window: WindowKind, begin: int) -> str:
    return f"{stream} {window.value} {begin}"


def progress_key(partition: int) -> str:
    """The key under which the last progress of a partition stands among the windows."""
    return f"progress {partition}"


def fold_report(
    window: WindowStatistics | None, kind: WindowKind, report: StreamStatistics, offset: int, by: str
) -> WindowStatistics:
    """The window that the report at an offset belongs to with it added; `window` is what there was of it.

    One that is redelivered is in the window already and changes nothing. `by` is who folds, as service/instance.
    """
    if window is not None and offset <= window.offset:
        return window
    return WindowStatistics(
        id=report.id,
        by=by,
        at=report.at,
        scope=report.scope,
        stream=report.stream,
        window=kind,
        begin=kind.begin(report.minute),
        offset=offset,
        figures=report.figures.plus(window.figures) if window is not None else report.figures,
    )


_OPERATIONS: dict[type, Operation] = {
    StreamCreated: Operation.CREATE,
    StreamUpdated: Operation.UPDATE,
    StreamScaled: Operation.SCALE,
    StreamTruncated: Operation.TRUNCATE,
    StreamSealed: Operation.SEAL,
    StreamDeleted: Operation.DELETE,
}


class TransactionCounter:
    """Counts transactions. Remembers when those were opened that are ending, at most `max_ending` of them."""

    def __init__(self, max_ending: int = 100_000) -> None:
        self._opened_at: dict[str, int] = {}
        self._max_ending = max_ending

    def figures(self, event: Event, reader: Reader) -> Figures | None:
        """What an event adds; None if it counts for nothing. `reader` has just folded its record."""
        match event:
            case TransactionOpened():
                return Figures(opened=1)
            case TransactionCommitting() | TransactionAborting():
                state = reader.get(event.aggregate)
                if isinstance(state, Transaction) and len(self._opened_at) < self._max_ending:
                    self._opened_at[event.aggregate] = state.opened_at
            case TransactionCommitted():
                return Figures(committed=1).plus(self._time(event))
            case TransactionAborted():
                state = reader.get(event.aggregate)
                reason = state.reason if isinstance(state, EndedTransaction) else None
                return Figures(aborted={reason or AbortReason.USER: 1}).plus(self._time(event))
        return None

    def forget(self) -> None:
        """The partitions are others': what was ending there is not ours to count."""
        self._opened_at.clear()

    def _time(self, event: TransactionCommitted | TransactionAborted) -> Figures:
        opened_at = self._opened_at.pop(event.aggregate, None)
        if opened_at is None:
            return Figures()
        took_ms = max(0, event.at - opened_at)
        return Figures(timed=1, total_ms=took_ms, longest_ms=took_ms)


class OperationCounter:
    """Counts what is done to streams; a mark stream goes with its base and is not counted."""

    def figures(self, event: Event, _reader: Reader) -> Figures | None:
        """What an event adds; None if it counts for nothing."""
        operation = _OPERATIONS.get(type(event))
        if operation is None or not isinstance(event, StreamEvent) or base_name(event.stream) != event.stream:
            return None
        return Figures(operations={operation: 1})

    def forget(self) -> None:
        """Nothing is stored."""


Counter = TransactionCounter | OperationCounter

Counted = tuple[StreamId, int]
"""A stream and when the minute begins, epoch ms."""


class PendingFigures:
    """What was counted and not reported yet, of at most `most` streams and minutes; `dropped` is what came beyond."""

    def __init__(self, most: int = 10_000) -> None:
        self.dropped = 0
        self._most = most
        self._figures: dict[Counted, Figures] = {}

    def add(self, counted: Counted, figures: Figures) -> None:
        present = self._figures.get(counted)
        if present is None and len(self._figures) >= self._most:
            self.dropped += 1
            return
        self._figures[counted] = figures.plus(present) if present is not None else figures

    def take(self) -> dict[Counted, Figures]:
        """Everything, which is not here any more then."""
        taken, self._figures = self._figures, {}
        return taken
