"""What the auditor knows of streams and transactions: a small model of its own, folded from the journal's events.

It shares nothing with the product but the events themselves. Every event that cannot follow from what is known is a
violation: a transaction that leaves an end, a second batch, a workflow beside a batch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from simulation.violation import Violation

from sluice.domain.segment import Segment
from sluice.domain.stream.events import (
    Replacement,
    StreamCreated,
    StreamCreationStarted,
    StreamDeleted,
    StreamDeletionStarted,
    StreamEpochAdded,
    StreamEpochsRolled,
    StreamRolled,
    StreamScaled,
    StreamScaleStarted,
    StreamSealed,
    StreamSealStarted,
    StreamTruncated,
    StreamTruncationStarted,
    StreamUpdated,
    StreamUpdateStarted,
)
from sluice.domain.transaction.events import (
    CommitBatchEnded,
    CommitBatchStarted,
    EmptySegmentsDeleted,
    EmptySegmentsSkipped,
    TransactionAborted,
    TransactionAborting,
    TransactionCommitted,
    TransactionCommitting,
    TransactionEvent,
    TransactionOpened,
    TransactionPinged,
    TransactionReady,
)

ENDED = {"COMMITTING": "COMMITTED", "ABORTING": "ABORTED"}


@dataclass(eq=False)
class Txn:
    """A transaction. Times in ms; `last_activity_at` is the last sign of life as it was decided.

    `numbers` are those of its segments: a stream's next life has others.
    """

    scope: str
    stream: str
    id: str
    epoch: int
    opened_at: int
    lease_ms: int
    last_activity_at: int
    first_lease_ms: int
    request: str | None
    numbers: frozenset[int]
    state: str = "OPEN"
    ready: bool = False
    reason: str = ""
    ended_at: int = 0
    committing_at: int = 0


@dataclass(eq=False)
class StreamModel:
    """A stream from one creation: epochs with their references and segments as (id, low, high)."""

    scope: str
    name: str
    creation_id: str
    epochs: list[tuple[int, list[Segment]]]
    state: str = "CREATING"
    active: int = 0
    replacement: Replacement | None = None
    workflow: str = ""
    batch: tuple[str, ...] = ()

    @property
    def reference(self) -> int:
        return self.epochs[self.active][0]

    def segments(self, epoch: int) -> list[Segment]:
        return sorted(self.epochs[epoch][1], key=lambda s: s.low)


@dataclass
class Model:
    streams: dict[tuple[str, str], StreamModel] = field(default_factory=dict)
    txns: dict[tuple[str, str, str], Txn] = field(default_factory=dict)
    live: dict[tuple[str, str, str], Txn] = field(default_factory=dict)
    opened: dict[str | None, str] = field(default_factory=dict)
    committing: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    committed: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    ended: dict[tuple[str, str], list[Txn]] = field(default_factory=dict)
    """Of the streams that are there."""
    skipped: set[str] = field(default_factory=set)
    """Names of all segments that commits have ever skipped."""
    to_delete: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Numbers of batches with skipped segments that are not known to be deleted."""
    batches: dict[tuple[str, str], int] = field(default_factory=dict)
    working: int = 0
    """Workflows and batches under way."""

    def apply(self, event: Any, at: int) -> None:
        """Raises Violation."""
        apply = _APPLY.get(type(event))
        if apply is not None:
            apply(self, event, at)

    def txn(self, event: TransactionEvent, *states: str) -> Txn:
        txn = self.txns.get((event.scope, event.stream, event.transaction))
        if txn is None or txn.state not in states:
            raise Violation(f"{event} of a transaction that is {txn.state if txn else 'unknown'}")
        return txn

    def stream(self, event: Any) -> StreamModel:
        stream = self.streams.get((event.scope, event.stream))
        if stream is None:
            raise Violation(f"{event} of a stream that is not there")
        return stream

    # Transactions.

    def on_opened(self, event: TransactionOpened, _at: int) -> None:
        key = (event.scope, event.stream, event.transaction)
        stream = self.stream(event)
        if key in self.txns:
            raise Violation(f"{event}: the id was given before")
        if event.request in self.opened:
            raise Violation(f"{event}: the request has opened {self.opened[event.request]}")
        self.opened[event.request] = event.transaction
        epoch = int(event.transaction.replace("-", "")[:8], 16)
        if stream.state not in ("ACTIVE",):
            raise Violation(f"{event} while the stream is {stream.state}")
        if epoch != stream.reference:
            raise Violation(f"{event}: its epoch is {epoch}, the active reference {stream.reference}")
        numbers = frozenset(s.id & 0xFFFFFFFF for s in stream.segments(epoch))
        txn = Txn(*key, epoch, event.at, event.lease_ms, event.at, event.lease_ms, event.request, numbers)
        txn.ready = event.prepared
        self.txns[key] = self.live[key] = txn

    def on_ready(self, event: TransactionReady, _at: int) -> None:
        txn = self.txn(event, "OPEN")
        txn.ready, txn.last_activity_at = True, max(txn.last_activity_at, event.at)

    def on_pinged(self, event: TransactionPinged, _at: int) -> None:
        txn = self.txn(event, "OPEN")
        if event.at >= txn.last_activity_at:
            txn.last_activity_at, txn.lease_ms = event.at, event.lease_ms

    def on_committing(self, event: TransactionCommitting, at: int) -> None:
        txn = self.txn(event, "OPEN")
        txn.state, txn.committing_at = "COMMITTING", at
        self.committing.setdefault((event.scope, event.stream), []).append(event.transaction)

    def on_aborting(self, event: TransactionAborting, at: int) -> None:
        txn = self.txn(event, "OPEN")
        txn.state, txn.reason, txn.ended_at = "ABORTING", event.reason.value, at

    def on_committed(self, event: TransactionCommitted, at: int) -> None:
        self._end(self.txn(event, "COMMITTING"), at)
        self.committed.setdefault((event.scope, event.stream), []).append(event.transaction)

    def on_aborted(self, event: TransactionAborted, at: int) -> None:
        self._end(self.txn(event, "ABORTING"), at)

    def _end(self, txn: Txn, at: int) -> None:
        txn.state, txn.ended_at = ENDED[txn.state], at
        key = (txn.scope, txn.stream, txn.id)
        del self.live[key]
        self.ended.setdefault(key[:2], []).append(txn)

    def on_batch_started(self, event: CommitBatchStarted, _at: int) -> None:
        stream = self.stream(event)
        if stream.batch:
            raise Violation(f"{event} beside {stream.batch}")
        if stream.workflow not in ("", "seal"):
            raise Violation(f"{event} beside {stream.workflow}")
        txns = [self.txns[(event.scope, event.stream, t)] for t in event.transactions]
        wrong = [t.id for t in txns if t.state != "COMMITTING"]
        if wrong:
            raise Violation(f"{event}: not committing: {wrong}")
        if len({t.epoch for t in txns}) != 1:
            raise Violation(f"{event}: of several epochs")
        if event.rolls != (stream.epochs[txns[0].epoch][0] != stream.reference):
            raise Violation(f"{event}: epoch {txns[0].epoch} over active reference {stream.reference}")
        stream.batch = event.transactions
        self.working += 1
        self.batches[event.scope, event.stream] = self.batches.get((event.scope, event.stream), 0) + 1

    def on_batch_ended(self, event: CommitBatchEnded, _at: int) -> None:
        stream = self.stream(event)
        left = [t for t in stream.batch if self.txns[(event.scope, event.stream, t)].state != "COMMITTED"]
        if left or not stream.batch:
            raise Violation(f"{event}: not committed: {left} of {stream.batch}")
        stream.batch = ()
        self.working -= 1

    def on_skipped(self, event: EmptySegmentsSkipped, _at: int) -> None:
        key = (event.scope, event.stream)
        stream, batches = self.stream(event), self.to_delete.setdefault(key, [])
        if not stream.batch or batches[-1:] == [self.batches[key]]:
            raise Violation(f"{event}: the batch {stream.batch} has skipped {batches}")
        batches.append(self.batches[key])
        for id, numbers in event.segments.items():
            txn = self.txns[*key, id]
            if id not in stream.batch or not txn.numbers.issuperset(numbers):
                raise Violation(f"{event}: {txn} is not in {stream.batch}")
            digits = id.replace("-", "")
            names = {f"{'/'.join(key)}/{n}.#epoch.{txn.epoch}#transaction.{digits}" for n in numbers}
            self.skipped |= names

    def on_skipped_deleted(self, event: EmptySegmentsDeleted, _at: int) -> None:
        batches = self.to_delete.get((event.scope, event.stream), [])
        if not batches or batches[0] > event.batch:
            raise Violation(f"{event}: nothing of that was skipped, but in {batches}")
        batches[:] = [batch for batch in batches if batch > event.batch]

    # Streams.

    def _begin(self, stream: StreamModel, workflow: str) -> None:
        if stream.workflow or (stream.batch and workflow != "create"):
            raise Violation(f"{workflow} of {stream.name} beside {stream.workflow or stream.batch}")
        stream.workflow = workflow
        self.working += 1

    def _finish(self, stream: StreamModel, state: str = "ACTIVE") -> None:
        if not stream.workflow:
            raise Violation(f"{stream.name}: the end of no workflow")
        stream.workflow, stream.state, stream.replacement = "", state, None
        self.working -= 1

    def on_creation_started(self, event: StreamCreationStarted, _at: int) -> None:
        key = (event.scope, event.stream)
        if key in self.streams:
            raise Violation(f"{event}: it is there")
        self.streams[key] = stream = StreamModel(*key, event.creation_id, [(0, list(event.segments))])
        self._begin(stream, "create")

    def on_created(self, event: StreamCreated, _at: int) -> None:
        self._finish(self.stream(event))

    def on_update_started(self, event: StreamUpdateStarted, _at: int) -> None:
        stream = self.stream(event)
        self._begin(stream, "update")
        stream.replacement = event.replacement

    def on_updated(self, event: StreamUpdated, _at: int) -> None:
        stream = self.stream(event)
        if event.config is not None:
            if stream.workflow or stream.batch:
                raise Violation(f"{event} beside {stream.workflow or stream.batch}")
            return
        self._move(stream)
        self._finish(stream)

    def on_scale_started(self, event: StreamScaleStarted, _at: int) -> None:
        stream = self.stream(event)
        self._begin(stream, "scale")
        stream.replacement = event.replacement

    def on_epoch_added(self, event: StreamEpochAdded, _at: int) -> None:
        stream = self.stream(event)
        replacement = stream.replacement
        if replacement is None or len(stream.epochs) != stream.active + 1:
            raise Violation(f"{event}: nothing to add")
        stays = [s for s in stream.epochs[stream.active][1] if s.id not in replacement.seals]
        stream.epochs.append((len(stream.epochs), [*stays, *replacement.creates]))

    def on_scaled(self, event: StreamScaled, _at: int) -> None:
        stream = self.stream(event)
        self._move(stream)
        self._finish(stream)

    def on_epochs_rolled(self, event: StreamEpochsRolled, _at: int) -> None:
        stream = self.stream(event)
        if not stream.batch or len(stream.epochs) != stream.active + 1:
            raise Violation(f"{event}: no batch rolls")
        for of in (event.duplicates, stream.active):
            reference, segments = stream.epochs[of]
            number = len(stream.epochs)
            copies = [Segment((number << 32) | (s.id & 0xFFFFFFFF), s.low, s.high) for s in segments]
            stream.epochs.append((reference, copies))

    def on_rolled(self, event: StreamRolled, _at: int) -> None:
        self._move(self.stream(event))

    def _move(self, stream: StreamModel) -> None:
        stream.active = len(stream.epochs) - 1

    def on_truncation_started(self, event: StreamTruncationStarted, _at: int) -> None:
        self._begin(self.stream(event), "truncate")

    def on_truncated(self, event: StreamTruncated, _at: int) -> None:
        self._finish(self.stream(event))

    def on_seal_started(self, event: StreamSealStarted, _at: int) -> None:
        stream = self.stream(event)
        self._begin(stream, "seal")
        stream.state = "SEALING"

    def on_sealed(self, event: StreamSealed, _at: int) -> None:
        stream = self.stream(event)
        key = (event.scope, event.stream)
        left = [t.id for k, t in self.live.items() if k[:2] == key]
        if left:
            raise Violation(f"{event}: not ended: {left}")
        self._finish(stream, "SEALED")

    def on_deletion_started(self, event: StreamDeletionStarted, _at: int) -> None:
        self._begin(self.stream(event), "delete")

    def on_deleted(self, event: StreamDeleted, _at: int) -> None:
        stream = self.stream(event)
        if stream.workflow == "delete":
            self._finish(stream)
        if left := self.to_delete.get((event.scope, event.stream)):
            raise Violation(f"{event}: skipped and not deleted: {left}")
        del self.streams[(event.scope, event.stream)]
        self.ended.pop((event.scope, event.stream), None)


_APPLY: dict[type, Callable[[Model, Any, int], None]] = {
    TransactionOpened: Model.on_opened,
    TransactionReady: Model.on_ready,
    TransactionPinged: Model.on_pinged,
    TransactionCommitting: Model.on_committing,
    TransactionAborting: Model.on_aborting,
    TransactionCommitted: Model.on_committed,
    TransactionAborted: Model.on_aborted,
    CommitBatchStarted: Model.on_batch_started,
    CommitBatchEnded: Model.on_batch_ended,
    EmptySegmentsSkipped: Model.on_skipped,
    EmptySegmentsDeleted: Model.on_skipped_deleted,
    StreamCreationStarted: Model.on_creation_started,
    StreamCreated: Model.on_created,
    StreamUpdateStarted: Model.on_update_started,
    StreamUpdated: Model.on_updated,
    StreamScaleStarted: Model.on_scale_started,
    StreamEpochAdded: Model.on_epoch_added,
    StreamScaled: Model.on_scaled,
    StreamEpochsRolled: Model.on_epochs_rolled,
    StreamRolled: Model.on_rolled,
    StreamTruncationStarted: Model.on_truncation_started,
    StreamTruncated: Model.on_truncated,
    StreamSealStarted: Model.on_seal_started,
    StreamSealed: Model.on_sealed,
    StreamDeletionStarted: Model.on_deletion_started,
    StreamDeleted: Model.on_deleted,
}
