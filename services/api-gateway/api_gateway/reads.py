"""The read path: answers from this process's view of the journal, behind a barrier.

Behind the barrier the view holds all that was acknowledged before the read began, on whatever gateway. A state that
is returned here belongs to the fold and may change at the next await: take out what is needed before.
"""

import asyncio
import itertools
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from sluice.domain.cluster import Cluster, cluster_of
from sluice.domain.commands import NameKind
from sluice.domain.decision import Reader
from sluice.domain.errors import NotFoundError
from sluice.domain.group import ReaderGroup, find_group
from sluice.domain.names import group_aggregate, key_of, scope_aggregate, stream_key
from sluice.domain.scope import Scope, find_scope
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.table import Table, find_table
from sluice.domain.transaction.batch import find_commits
from sluice.domain.transaction.index import StreamTransactions, transactions_of
from sluice.domain.transaction.state import EndedTransaction, Transaction, TransactionState, find_transaction
from sluice.domain.workflow import Workflow, WorkflowKind, running
from sluice.journal.journal import Journal

Thing = TypeVar("Thing")

SORTED_KEPT = 64
"""How many lists of names are kept in order: those that were asked for last."""


class MissingError(NotFoundError):
    """There is no such thing; `reason` is Pravega's name for that."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        self.reason = reason


def missing_scope(scope: str) -> MissingError:
    return MissingError(f"scope {scope} does not exist", "SCOPE_NOT_FOUND")


class StreamInFull(msgspec.Struct, frozen=True):
    """A stream with what is kept beside it: its transactions, and the workflow that changes it or commits them."""

    stream: Stream
    transactions: StreamTransactions
    workflow: Workflow | None


class Reads:
    """Reads of all there is; those that wait raise JournalError when the journal is away."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._everywhere = tuple(range(journal.partitions))
        self._sorted: dict[tuple[str, NameKind], tuple[int, list[str]]] = {}

    async def stream(self, scope: str, name: str) -> Stream:
        """Raises NotFoundError."""
        stream = await self.stream_or_none(scope, name)
        if stream is None:
            raise MissingError(f"stream {scope}/{name} does not exist", "STREAM_NOT_FOUND")
        return stream

    async def stream_or_none(self, scope: str, name: str) -> Stream | None:
        key = stream_key(scope, name)
        await self._journal.barrier((self._journal.partition_of(key),))
        return find_stream(self._journal.reader(key), scope, name)

    async def stream_in_full(self, scope: str, name: str) -> StreamInFull:
        """Raises NotFoundError."""
        stream = await self.stream(scope, name)
        view = self._journal.reader(stream_key(scope, name))
        workflow = running(stream) or running(find_commits(view, scope, name))
        return StreamInFull(stream, transactions_of(view, scope, name), workflow)

    async def scaled_stream(self, scope: str, name: str, epoch: int, most_s: float) -> Stream | None:
        """The stream once the scale that began on `epoch`, if one runs, has ended, or after `most_s` seconds."""
        stream = await self.stream_or_none(scope, name)
        key = stream_key(scope, name)

        def has_ended(view: Reader) -> bool:
            present = find_stream(view, scope, name)
            if present is None or present.workflow is None or present.active != epoch:
                return True
            return present.workflow.kind is not WorkflowKind.SCALE_STREAM

        if not has_ended(self._journal.reader(key)):
            with suppress(TimeoutError):
                async with asyncio.timeout(most_s):
                    await self._journal.until(key, has_ended)
            stream = find_stream(self._journal.reader(key), scope, name)
        return stream

    async def stream_in_scope(self, scope: str, name: str) -> Stream | None:
        """The same, but raises NotFoundError if there is not even the scope."""
        key = stream_key(scope, name)
        await self._barrier_with_scope(scope, key)
        return find_stream(self._journal.reader(key), scope, name)

    async def group_or_none(self, scope: str, name: str) -> ReaderGroup | None:
        """Raises NotFoundError if there is not even the scope."""
        await self._barrier_with_scope(scope, key_of(group_aggregate(scope, name)))
        return self.known_group(scope, name)

    def known_group(self, scope: str, name: str) -> ReaderGroup | None:
        """Without a barrier: for whoever has just seen a reply about the group."""
        return find_group(self._journal.reader(key_of(group_aggregate(scope, name))), scope, name)

    async def table_or_none(self, scope: str, name: str) -> Table | None:
        key = stream_key(scope, name)
        await self._journal.barrier((self._journal.partition_of(key),))
        return find_table(self._journal.reader(key), scope, name)

    async def known_transaction(
        self, scope: str, stream: str, transaction: str
    ) -> Transaction | EndedTransaction | None:
        """None for one that nobody has heard of, or that has been forgotten since it ended."""
        key = stream_key(scope, stream)
        await self._journal.barrier((self._journal.partition_of(key),))
        return find_transaction(self._journal.reader(key), scope, stream, transaction)

    def transaction(self, scope: str, stream: str, transaction: str) -> Transaction | EndedTransaction | None:
        """The same without a barrier: for whoever has the index of the stream's transactions at hand."""
        return find_transaction(self._journal.reader(stream_key(scope, stream)), scope, stream, transaction)

    async def transaction_state(self, scope: str, stream: str, transaction: str) -> TransactionState:
        """UNKNOWN for one that nobody has heard of, or that has been forgotten since it ended."""
        found = await self.known_transaction(scope, stream, transaction)
        return found.state if found is not None else TransactionState.UNKNOWN

    async def ended_transactions(self, scope: str, stream: str, most: int) -> list[EndedTransaction]:
        """The last transactions of a stream that have ended, the latest first."""
        key = stream_key(scope, stream)
        await self._journal.barrier((self._journal.partition_of(key),))
        reader = self._journal.reader(key)
        ids = itertools.islice(transactions_of(reader, scope, stream).ended(), most)
        found = (find_transaction(reader, scope, stream, id) for id in ids)
        return [f for f in found if isinstance(f, EndedTransaction)]

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

    async def scopes(self) -> list[str]:
        """The names of all scopes, in order."""
        await self._journal.barrier(self._everywhere)
        return sorted(scope.name for view in self._journal.views() for scope in view.scopes())

    async def everything(self) -> AsyncIterator[Iterator[tuple[str, Any]]]:
        """All aggregates with their names, partition after partition, each to be walked before the next await.

        Others get their turn between two partitions, so that a long journal holds nobody up.
        """
        await self._journal.barrier(self._everywhere)
        for view in self._journal.views():
            yield view.aggregates()
            await asyncio.sleep(0)

    async def streams_in(self, scope: str, after: str) -> Iterator[Stream] | None:
        """The streams behind a name, in order, to be walked before the next await; None if there is no such scope.

        A name that is reserved, but under which nothing was begun yet, is no stream.
        """
        return await self._things_in(scope, after, NameKind.STREAM, find_stream)

    async def tables_in(self, scope: str, after: str) -> Iterator[Table] | None:
        """The key-value tables behind a name, in the same way."""
        return await self._things_in(scope, after, NameKind.TABLE, find_table)

    async def groups_in(self, scope: str, after: str) -> Iterator[ReaderGroup] | None:
        """The reader groups behind a name, in the same way."""
        return await self._things_in(scope, after, NameKind.READER_GROUP, self._find_group)

    def _find_group(self, _reader: Reader, scope: str, name: str) -> ReaderGroup | None:
        return self.known_group(scope, name)

    async def _things_in(
        self, scope: str, after: str, kind: NameKind, find: Callable[[Reader, str, str], Thing | None]
    ) -> Iterator[Thing] | None:
        await self._journal.barrier(self._everywhere)
        state = self._scope(scope)
        if state is None:
            return None
        names = self._names_of(state, kind)
        following = itertools.islice(names, bisect_right(names, after), None)
        found = (find(self._journal.reader(stream_key(scope, name)), scope, name) for name in following)
        return (thing for thing in found if thing is not None)

    def _names_of(self, scope: Scope, kind: NameKind) -> list[str]:
        """The names in order; kept until the scope changes, because a long list is asked for page by page."""
        version = self._journal.reader(scope.name).version(scope_aggregate(scope.name))
        kept = self._sorted.pop((scope.name, kind), None)
        if kept is None or kept[0] != version:
            kept = version, sorted(scope.names[kind])
        self._sorted[scope.name, kind] = kept
        if len(self._sorted) > SORTED_KEPT:
            del self._sorted[next(iter(self._sorted))]
        return kept[1]

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
