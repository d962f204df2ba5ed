"""What the journal says of a segment: whether it is there, sealed, how long, and from where on.

A workflow records that it begins before it touches a segment, and its end after it has. So the state says of every
segment what holds, or which workflow is about to change that; where one is, less is expected. Names are used once, so
what is decided of a segment's end (sealed, truncated, deleted) stays decided. Pure; an `Expectations` is of one moment,
and of no use once its view has folded more.
Rules: stream-and-transaction-semantics 2 and 3; docs/commits.md.
"""

from enum import Enum
from functools import cached_property
from itertools import pairwise
from typing import Any

import msgspec

from sluice.domain.decision import Reader
from sluice.domain.ids import GroupId, StreamId, TableId
from sluice.domain.names import READER_GROUP_PREFIX, base_name
from sluice.domain.reader_group.state import find_group
from sluice.domain.segment import epoch_of
from sluice.domain.stream import cuts
from sluice.domain.stream.state import DeletedStream, Stream, StreamState
from sluice.domain.table.state import DeletedTable, Table
from sluice.domain.transaction.batch import Commits, find_commits
from sluice.domain.transaction.prepared import find_range
from sluice.domain.transaction.state import EndedTransaction, PreparedTransaction, Transaction, TransactionState
from sluice.domain.transaction_ids import epoch_of as epoch_of_transaction
from sluice.domain.transaction_ids import range_of
from sluice.domain.workflow import Workflow, WorkflowKind, running
from sluice.verification.subjects import StreamSegment, Subject, TableSegment, TransactionSegment


class Deletion(Enum):
    """What may be deleted that should be gone: in any case, or only while it is known to be empty."""

    ALWAYS = "always"
    IF_EMPTY = "if empty"


class Expected(msgspec.Struct, frozen=True):
    """`says` is the state in the journal, in words. None is either; lengths and offsets are bytes.

    `under_way` names the workflow for which no more is expected. `start_to` None is any start from `start_from` on.
    """

    says: str
    exists: bool | None = None
    sealed: bool | None = None
    length: int | None = None
    least_length: int = 0
    start_from: int = 0
    start_to: int | None = None
    key_length: int | None = None
    deletion: Deletion = Deletion.ALWAYS
    under_way: str = ""


class Expectations:
    """What the view says at this moment."""

    def __init__(self, view: Reader) -> None:
        self._view = view
        self._streams: dict[StreamId, _OfStream] = {}

    def of(self, subject: Subject) -> Expected:
        if isinstance(subject, TableSegment):
            return _of_table(self._view, subject.of, subject.id)
        stream = self._streams.get(subject.of)
        if stream is None:
            stream = self._streams[subject.of] = _OfStream(self._view, subject.of)
        if isinstance(subject, StreamSegment):
            return stream.segment(subject.id)
        return stream.transaction(subject)


def describe(workflow: Workflow) -> str:
    """A workflow for people."""
    failing = f", failed {workflow.attempts} times: {workflow.last_error}" if workflow.attempts else ""
    return f"{workflow.kind.value}{failing}"


class _OfStream:
    """One stream at one moment, with all that may be changing its segments."""

    def __init__(self, view: Reader, id: StreamId) -> None:
        self._view = view
        self._id = id
        self._state: Any = view.get(id.aggregate)
        self._commits = find_commits(view, id) or Commits(id)

    def segment(self, id: int) -> Expected:
        stream = self._state
        if not isinstance(stream, Stream):
            known = isinstance(stream, DeletedStream)
            return Expected("its stream is deleted", exists=False) if known else Expected("no such stream")
        if id not in self._own:
            return self._unknown(stream, id)
        if self._destruction is not None:
            return Expected("its stream is being deleted", under_way=describe(self._destruction))
        if stream.state is StreamState.CREATING:
            return Expected("its stream is being created", under_way=self._own_workflow)
        if stream.state is StreamState.RESTORING:
            return Expected("its stream is being restored", under_way=self._own_workflow)
        if id in stream.active_epoch.segments:
            return self._active(stream, id)
        if epoch_of(id) > stream.active:
            return self._successor(stream, id)
        if id in self._readable:
            size = stream.history.sealed_sizes.get(id, -1)
            length = size if size >= 0 else None
            return self._with_start(Expected("sealed", exists=True, sealed=True, length=length), id)
        if stream.workflow is not None and id in stream.workflow.deletes:
            return Expected("behind the head of its stream", under_way=describe(stream.workflow))
        # Where a restore could not tell how far a stream was truncated, its head is a guess.
        deletion = Deletion.IF_EMPTY if self._restored_in else Deletion.ALWAYS
        return Expected("deleted: it lies behind the head of its stream", exists=False, deletion=deletion)

    def _unknown(self, stream: Stream, id: int) -> Expected:
        """A segment that is not in the history: it may come into it, or be of a stream that had the name before."""
        if id in stream.spare:
            return Expected("left by a scale that was cancelled, until its stream is deleted")
        if epoch_of(id) > stream.active and self._own_workflow:
            return Expected("to be created", under_way=self._own_workflow)
        return Expected("deleted with an earlier stream of this name", exists=False)

    def _active(self, stream: Stream, id: int) -> Expected:
        sealed = self._active_is_sealed(stream, id)
        says = "active" if sealed is False else "sealed with its stream" if sealed else "being sealed"
        under_way = self._own_workflow if sealed is None else ""
        found = Expected(says, exists=True, sealed=sealed, under_way=under_way)
        return self._with_start(found, id)

    def _active_is_sealed(self, stream: Stream, id: int) -> bool | None:
        if stream.state is StreamState.SEALED:
            return True
        if stream.state is StreamState.SEALING:
            return None
        # The newest epoch is named before any segment that it replaces is sealed.
        is_replaced = stream.history.count > stream.active + 1 and stream.history.replaced_in(id) is not None
        return None if is_replaced else False

    def _successor(self, stream: Stream, id: int) -> Expected:
        """Of an epoch that was named while the segments before it are still being sealed."""
        size = stream.history.sealed_sizes.get(id)
        if size is not None:
            return Expected("sealed", exists=True, sealed=True, length=size)
        is_newest = id in stream.history.epoch(stream.history.count - 1).segments
        sealed = False if is_newest else None
        return Expected("active next", exists=True, sealed=sealed, under_way=self._own_workflow)

    def _with_start(self, expected: Expected, id: int) -> Expected:
        stream = self._state
        at = max(0, stream.cut.get(id, 0))
        forwarded = (stream.forwarded or {}).get(id, 0)
        start_from, start_to = at, at
        under_way = expected.under_way
        if stream.workflow is not None and stream.workflow.kind is WorkflowKind.TRUNCATE_STREAM:
            start_from, under_way = 0, describe(stream.workflow)
        changes = {
            "least_length": max(at, forwarded),
            "start_from": start_from,
            "start_to": None if self._clients_truncate else start_to,
            "under_way": under_way,
        }
        return msgspec.structs.replace(expected, **changes)

    def transaction(self, subject: TransactionSegment) -> Expected:
        id, state = subject.transaction, self._view.get(self._id.transaction(subject.transaction).aggregate)
        if isinstance(state, PreparedTransaction):
            return Expected("of a prepared transaction", exists=True, sealed=False, length=0)
        if isinstance(state, EndedTransaction):
            return self._ended(subject, state)
        if not isinstance(state, Transaction):
            return self._discarded(id)
        if state.state is TransactionState.OPEN and state.ready:
            return Expected("of an open transaction", exists=True, sealed=False)
        batch = self._commits.workflow
        if state.state is TransactionState.COMMITTING and (batch is None or id not in batch.transactions):
            # The segment stores may have merged it behind the back-up that it is from.
            may_be_merged = epoch_of_transaction(id) < self._restored_in
            return Expected("of a transaction that waits for its commit", exists=None if may_be_merged else True)
        workflow = state.workflow or batch
        under_way = describe(workflow) if workflow is not None else state.state.value
        return Expected(f"of a transaction in state {state.state.value}", under_way=under_way)

    def _ended(self, subject: TransactionSegment, state: EndedTransaction) -> Expected:
        says = f"of a transaction that is {state.state.value}"
        skipped = any(subject.number in batch.get(subject.transaction, ()) for batch in self._commits.skipped.values())
        if skipped:
            return Expected(says, under_way="deletion of what a commit has skipped")
        aborted = state.state is TransactionState.ABORTED
        return Expected(says, exists=False, deletion=Deletion.ALWAYS if aborted else Deletion.IF_EMPTY)

    def _discarded(self, transaction: str) -> Expected:
        """No aggregate: never opened of a range, or forgotten long after its end."""
        found = find_range(self._view, self._id.transaction(range_of(transaction)))
        if found is not None:
            under_way = describe(found.workflow) if found.workflow is not None else "preparation of transactions"
            return Expected("of a transaction that cannot be opened", under_way=under_way)
        return Expected("of a transaction that was discarded or is forgotten", exists=False, deletion=Deletion.IF_EMPTY)

    @cached_property
    def _restored_in(self) -> int:
        """The epoch that the last restore has added, which no other one comes right before; 0 without any."""
        if not isinstance(self._state, Stream):
            return 0
        numbers = self._state.history.numbers(0, self._state.active)
        return max((n for before, n in pairwise(numbers) if n > before + 1), default=0)

    @cached_property
    def _readable(self) -> frozenset[int]:
        """From the head to the active epoch."""
        return frozenset(cuts.segments_between(self._state, self._state.cut, {}))

    @cached_property
    def _own(self) -> "_Known":
        return _Known(self._state)

    @cached_property
    def _clients_truncate(self) -> bool:
        """Byte streams and revisioned ones, states of reader groups too, have one segment, which clients truncate."""
        history, active = self._state.history, self._state.active_epoch.segments
        return len(active) == 1 and history.epoch(history.first).segments == active

    @cached_property
    def _own_workflow(self) -> str:
        """What is changing the stream's segments."""
        found = running(self._state) or running(self._commits) or self._base_workflow
        return describe(found) if found is not None else ""

    @property
    def _base_workflow(self) -> Workflow | None:
        """A mark stream comes and goes with its stream, the state of a reader group with the group."""
        base = StreamId(self._id.scope, base_name(self._id.name))
        found = running(self._view.get(base.aggregate))
        if found is None and base.name.startswith(READER_GROUP_PREFIX):
            found = running(find_group(self._view, GroupId(base.scope, base.name.removeprefix(READER_GROUP_PREFIX))))
        return found

    @property
    def _destruction(self) -> Workflow | None:
        deletions = (WorkflowKind.DELETE_STREAM, WorkflowKind.DELETE_GROUP)
        own = running(self._state)
        return next((w for w in (own, self._base_workflow) if w is not None and w.kind in deletions), None)


class _Known:
    """Which segments are of this creation of a stream."""

    def __init__(self, stream: Stream) -> None:
        self._history = stream.history

    def __contains__(self, id: int) -> bool:
        return epoch_of(id) < self._history.count and self._history.find(id) is not None


def _of_table(view: Reader, id: TableId, segment: int) -> Expected:
    state = view.get(id.aggregate)
    if isinstance(state, DeletedTable):
        return Expected("its table is deleted", exists=False)
    if not isinstance(state, Table):
        return Expected("no such table")
    if all(s.id != segment for s in state.segments):
        return Expected("deleted with an earlier table of this name", exists=False)
    if state.workflow is not None:
        return Expected("its table is changing", under_way=describe(state.workflow))
    key_length = state.config.primary_key_length + state.config.secondary_key_length
    return Expected("of a table", exists=True, key_length=key_length)
