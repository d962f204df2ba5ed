"""The read path: answers from this process's view of the journal, behind a barrier.

Behind the barrier the view holds all that was acknowledged before the read began, on whatever gateway. A state that
is returned here belongs to the fold and may change at the next await: take out what is needed before.
"""

from collections.abc import Iterator

from sluice.domain.cluster import Cluster, cluster_of
from sluice.domain.errors import NotFoundError
from sluice.domain.names import scope_aggregate, stream_key
from sluice.domain.scope import Scope
from sluice.domain.stream.state import Stream, find_stream
from sluice.journal.journal import Journal


class Reads:
    """Reads of scopes, streams and the cluster; all that wait raise JournalError when the journal is away."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._everywhere = tuple(range(journal.partitions))

    async def stream(self, scope: str, name: str) -> Stream:
        """Raises NotFoundError."""
        stream = await self.stream_or_none(scope, name)
        if stream is None:
            raise NotFoundError(f"stream {scope}/{name} does not exist")
        return stream

    async def stream_or_none(self, scope: str, name: str) -> Stream | None:
        key = stream_key(scope, name)
        await self._journal.barrier((self._journal.partition_of(key),))
        return find_stream(self._journal.reader(key), scope, name)

    async def scope_exists(self, name: str) -> bool:
        await self._journal.barrier((self._journal.partition_of(name),))
        return self._scope(name) is not None

    async def scopes(self) -> list[str]:
        """The names of all scopes, in order."""
        await self._journal.barrier(self._everywhere)
        views = self._journal.views()
        return sorted(state.name for view in views for _, state in view.aggregates() if isinstance(state, Scope))

    async def streams_in(self, scope: str, after: str) -> Iterator[Stream] | None:
        """The streams behind a name, in order, to be walked before the next await; None if there is no such scope.

        A name that is reserved, but under which nothing was begun yet, is no stream.
        """
        await self._journal.barrier(self._everywhere)
        state = self._scope(scope)
        if state is None:
            return None
        names = sorted(name for name in state.streams if name > after)
        found = (find_stream(self._journal.reader(stream_key(scope, name)), scope, name) for name in names)
        return (stream for stream in found if stream is not None)

    def cluster(self) -> Cluster:
        """As far as it is known here, without a barrier: it changes by itself at any time anyway."""
        return cluster_of(self._journal.reader("cluster"))

    def _scope(self, name: str) -> Scope | None:
        state = self._journal.reader(name).get(scope_aggregate(name))
        return state if isinstance(state, Scope) else None
