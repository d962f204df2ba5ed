"""The read path: answers from this process's view of the journal, behind a barrier.

Behind the barrier the view holds all that was acknowledged before the read began, on whatever gateway. A state that
is returned here belongs to the fold and may change at the next await: take out what is needed before.
"""

import heapq
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

import msgspec

from api_gateway.edge.slices import Slices
from sluice.domain.cluster.state import Cluster, cluster_of
from sluice.domain.decision import Reader
from sluice.domain.errors import NotFoundError
from sluice.domain.ids import GroupId, ResourceKind, StreamId, TableId, TransactionId
from sluice.domain.listings import Members, members_of
from sluice.domain.names import key_of
from sluice.domain.reader_group.state import ReaderGroup, find_group
from sluice.domain.scope.index import scopes_of
from sluice.domain.scope.state import Scope, find_scope
from sluice.domain.status import Status
from sluice.domain.stream.restore import check_restored
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.table.state import Table, find_table
from sluice.domain.transaction.batch import find_commits
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.transaction.state import EndedTransaction, Transaction, TransactionState, find_transaction
from sluice.domain.workflow import Workflow, WorkflowKind, is_under_way, running
from sluice.engine.fold import PartitionView
from sluice.engine.journal import Journal

ResourceT = TypeVar("ResourceT", Stream, ReaderGroup, Table)

Names = Callable[[Members], Iterator[str]]
"""Picks names, in order, of what one partition holds of a scope."""

AT_A_TIME = 250
"""So many names are looked for at once, where other tasks run between."""


def streams_after(after: str, *, internal: bool = True) -> Names:
    """The streams behind a name; without `internal` those whose names do not begin with an underscore."""
    return lambda members: members.after(ResourceKind.STREAM, after, internal=internal)


def streams_with_tag(tag: str, after: str, *, internal: bool = True) -> Names:
    """Those with a tag, in the same way."""
    return lambda members: members.tagged_after(tag, after, internal=internal)


_ENDING = frozenset({TransactionState.COMMITTING, TransactionState.ABORTING})


def _state(found: Transaction | EndedTransaction | None) -> TransactionState:
    return found.state if found is not None else TransactionState.UNKNOWN


class MissingError(NotFoundError):
    """There is no such resource; `reason` is Pravega's name for that."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def missing_scope(scope: str) -> MissingError:
    return MissingError(f"scope {scope} does not exist", Status.SCOPE_NOT_FOUND)


def _missing_stream(id: StreamId) -> MissingError:
    return MissingError(f"stream {id} does not exist", Status.STREAM_NOT_FOUND)


class StreamInFull(msgspec.Struct, frozen=True):
    """A stream with what is stored beside it: its transactions, and the workflow that changes it or commits them."""

    stream: Stream
    transactions: StreamTransactions
    workflow: Workflow | None


class Reads:
    """Reads of all there is; those that wait raise JournalError when the journal is away."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._everywhere = tuple(range(journal.partitions))

    @property
    def partitions(self) -> int:
        """How many the journal has."""
        return len(self._everywhere)

    async def stream(self, id: StreamId) -> Stream:
        """Raises NotFoundError, and as all queries on one stream StreamRestoringError."""
        stream = await self.stream_or_none(id)
        if stream is None:
            raise _missing_stream(id)
        return stream

    async def stream_or_none(self, id: StreamId) -> Stream | None:
        key = id.key
        await self._journal.barrier((self._journal.partition_of(key),))
        return self._restored(id)

    def known_stream(self, id: StreamId) -> Stream | None:
        """Without a barrier: as far as this process knows."""
        return find_stream(self._journal.reader(id.key), id)

    def _restored(self, id: StreamId) -> Stream | None:
        found = find_stream(self._journal.reader(id.key), id)
        check_restored(found)
        return found

    async def stream_in_full(self, id: StreamId) -> StreamInFull:
        """Also of a stream that is being restored. Raises NotFoundError."""
        await self._journal.barrier((self._journal.partition_of(id.key),))
        stream = find_stream(self._journal.reader(id.key), id)
        if stream is None:
            raise _missing_stream(id)
        view = self._journal.reader(id.key)
        workflow = running(stream) or running(find_commits(view, id))
        return StreamInFull(stream, transactions_of(view, id), workflow)

    async def scaled_stream(self, id: StreamId, epoch: int, most_s: float) -> Stream | None:
        """The stream once the scale that began on `epoch`, if one runs, has ended, or after `most_s` seconds."""
        stream = await self.stream_or_none(id)
        key = id.key

        def has_ended(view: Reader) -> bool:
            present = find_stream(view, id)
            if present is None or present.workflow is None or present.active != epoch:
                return True
            return present.workflow.kind is not WorkflowKind.SCALE_STREAM

        if not has_ended(self._journal.reader(key)):
            await self._journal.until(key, has_ended, most_s)
            stream = find_stream(self._journal.reader(key), id)
        return stream

    async def stream_in_scope(self, id: StreamId) -> Stream | None:
        """The same, but raises NotFoundError if there is not even the scope."""
        key = id.key
        await self._barrier_with_scope(id.scope, key)
        return self._restored(id)

    async def group_or_none(self, id: GroupId) -> ReaderGroup | None:
        """Raises NotFoundError if there is not even the scope."""
        await self._barrier_with_scope(id.scope, id.key)
        return self.known_group(id)

    def known_group(self, id: GroupId) -> ReaderGroup | None:
        """Without a barrier: for callers that have just seen a reply about the group."""
        return find_group(self._journal.reader(id.key), id)

    async def table_or_none(self, id: TableId) -> Table | None:
        key = id.key
        await self._journal.barrier((self._journal.partition_of(key),))
        return find_table(self._journal.reader(key), id)

    def known_table(self, id: TableId) -> Table | None:
        """Without a barrier: as far as this process knows."""
        return find_table(self._journal.reader(id.key), id)

    async def known_transaction(self, id: TransactionId) -> Transaction | EndedTransaction | None:
        """None for one that is unknown, or that has been forgotten since it ended."""
        key = id.key
        await self._journal.barrier((self._journal.partition_of(key),))
        return find_transaction(self._journal.reader(key), id)

    def transaction(self, id: TransactionId) -> Transaction | EndedTransaction | None:
        """The same without a barrier: for callers that have the index of the stream's transactions at hand."""
        return find_transaction(self._journal.reader(id.key), id)

    async def transaction_state(self, id: TransactionId, most_s: float = 0.0) -> TransactionState:
        """UNKNOWN for one that is unknown, or that has been forgotten since it ended.

        Of one that is being committed or aborted it is the state once that is done, or after `most_s` seconds.
        """
        state = _state(await self.known_transaction(id))
        if most_s and state in _ENDING:
            await self._journal.until(id.key, lambda view: _state(find_transaction(view, id)) not in _ENDING, most_s)
            state = _state(self.transaction(id))
        return state

    async def ended_transactions(self, id: StreamId, most: int) -> list[EndedTransaction]:
        """The last transactions of a stream that have ended, the latest first."""
        key = id.key
        await self._journal.barrier((self._journal.partition_of(key),))
        return list(itertools.islice(transactions_of(self._journal.reader(key), id).ended(), most))

    def view(self, key: str) -> PartitionView:
        """The view of the key's partition, without a barrier."""
        return self._journal.reader(key)

    async def _barrier_with_scope(self, scope: str, key: str) -> None:
        """Raises NotFoundError if there is no such scope."""
        await self._journal.barrier({self._journal.partition_of(scope), self._journal.partition_of(key)})
        if self._scope(scope) is None:
            raise missing_scope(scope)

    async def scope_exists(self, name: str) -> bool:
        await self._journal.barrier((self._journal.partition_of(name),))
        return self._scope(name) is not None

    async def scope(self, name: str) -> Scope:
        """Raises NotFoundError."""
        await self._journal.barrier((self._journal.partition_of(name),))
        scope = self._scope(name)
        if scope is None:
            raise missing_scope(name)
        return scope

    async def scopes(self, after: str) -> Iterator[str]:
        """The names of all scopes behind this one, in order, to be walked before the next await."""
        await self._journal.barrier(self._everywhere)
        return heapq.merge(*(scopes_of(view).after(after) for view in self._journal.views()))

    async def members(self, scope: str) -> list[Members]:
        """What is in the scope, by partition."""
        await self._journal.barrier(self._everywhere)
        return [members_of(view, scope) for view in self._journal.views()]

    async def at_work(self) -> AsyncIterator[tuple[str, Any, PartitionView]]:
        """The aggregates that a workflow changes or is queued to, with states and views, in no order.

        Each is to be looked at before the next await; other tasks run between.
        """
        await self._journal.barrier(self._everywhere)
        slices = Slices()
        for view in self._journal.views():
            for aggregate in list(view.under_way()):
                if is_under_way(state := view.get(aggregate)):
                    yield aggregate, state, view
                if slices.is_over():
                    await slices.pause()

    async def creation_id(self, aggregate: str) -> str:
        """Which of all resources of its name there is, as a deletion names it; "" if there is none."""
        key = key_of(aggregate)
        await self._journal.barrier((self._journal.partition_of(key),))
        return getattr(self._journal.reader(key).get(aggregate), "creation_id", "")

    def known(self, aggregate: str) -> tuple[Any, PartitionView]:
        """The state of an aggregate, and the view that it is in; without a barrier."""
        view = self._journal.reader(key_of(aggregate))
        return view.get(aggregate), view

    async def names_in(self, scope: str, names: Names) -> Iterator[str] | None:
        """What `names` picks of the scope's members, in order, to be walked before the next await.

        None if there is no such scope.
        """
        return self._merged(scope, names) if await self._has_caught_up_with(scope) else None

    async def streams_in(self, scope: str, names: Names) -> Iterator[Stream] | None:
        """The streams whose names are picked, in the same way."""
        return await self._resources_in(scope, ResourceKind.STREAM, names, Stream)

    async def tables_in(self, scope: str, after: str) -> Iterator[Table] | None:
        """The key-value tables behind a name, in the same way."""
        kind = ResourceKind.TABLE
        return await self._resources_in(scope, kind, lambda members: members.after(kind, after), Table)

    async def groups_in(self, scope: str, after: str) -> Iterator[ReaderGroup] | None:
        """The reader groups behind a name, in the same way."""
        kind = ResourceKind.READER_GROUP
        return await self._resources_in(scope, kind, lambda members: members.after(kind, after), ReaderGroup)

    async def all_streams(self, scope: str, names: Callable[[str], Names] = streams_after) -> AsyncIterator[Stream]:
        """The streams of a scope whose names are picked, in order; other tasks run between.

        Each is to be looked at before the next await. Raises NotFoundError.
        """
        if not await self._has_caught_up_with(scope):
            raise missing_scope(scope)
        async for name, view in self.names_of(scope, names):
            stream = view.peek(StreamId(scope, name).aggregate)
            if isinstance(stream, Stream):
                yield stream

    async def scope_names(self, begin: str = "") -> list[str]:
        """The names of all scopes from this one on, in order, when the views hold all that was acknowledged before."""
        await self._journal.barrier(self._everywhere)
        names = heapq.merge(*(scopes_of(view).after(begin) for view in self._journal.views()))
        return [begin, *names] if begin and self._scope(begin) is not None else list(names)

    async def names_of(
        self, scope: str, names: Callable[[str], Names], behind: str = ""
    ) -> AsyncIterator[tuple[str, PartitionView]]:
        """What `names` picks of the scope's members behind a name, each with its view; other tasks run between.

        Without a barrier.
        """
        slices = Slices()
        while True:
            page = list(itertools.islice(self._located(scope, names(behind)), AT_A_TIME))
            for name, partition in page:
                yield name, self._journal.views()[partition]
                if slices.is_over():
                    await slices.pause()
            if len(page) < AT_A_TIME:
                return
            behind = page[-1][0]

    async def everything(self) -> None:
        """Return when the views of all partitions hold all that was acknowledged before."""
        await self._journal.barrier(self._everywhere)

    def views(self) -> list[PartitionView]:
        """Those of all partitions, without a barrier: what is read of them may be old at the next await."""
        return self._journal.views()

    async def _resources_in(
        self, scope: str, kind: ResourceKind, names: Names, of_type: type[ResourceT]
    ) -> Iterator[ResourceT] | None:
        if not await self._has_caught_up_with(scope):
            return None
        views = self._journal.views()
        located = self._located(scope, names)
        found = (views[partition].peek(kind.id(scope, name).aggregate) for name, partition in located)
        return (state for state in found if isinstance(state, of_type))

    async def _has_caught_up_with(self, scope: str) -> bool:
        """Whether there is such a scope, when the views hold all that was acknowledged before."""
        await self._journal.barrier(self._everywhere)
        return self._scope(scope) is not None

    def _merged(self, scope: str, names: Names) -> Iterator[str]:
        return heapq.merge(*(names(members_of(view, scope)) for view in self._journal.views()))

    def _located(self, scope: str, names: Names) -> Iterator[tuple[str, int]]:
        """The names, each with its partition: so nothing has to be hashed to find the state."""
        views = enumerate(self._journal.views())
        return heapq.merge(
            *(zip(names(members_of(view, scope)), itertools.repeat(partition)) for partition, view in views)
        )

    async def workflow(self, aggregate: str) -> Workflow | None:
        """The workflow that is changing the aggregate."""
        key = key_of(aggregate)
        await self._journal.barrier((self._journal.partition_of(key),))
        return running(self._journal.reader(key).get(aggregate))

    def cluster(self) -> Cluster:
        """As far as it is known here, without a barrier: it changes by itself at any time anyway."""
        return cluster_of(self._journal.reader("cluster"))

    def _scope(self, name: str) -> Scope | None:
        return find_scope(self._journal.reader(name), name)
