"""What the requests of a key wait behind, as far as the view shows it.

Requests to stream-workflows are handled one after the other by key: they stand in the key's *queue*. One that has begun
a workflow holds the queue until that has ended, and one that waits for a batch of commits holds it meanwhile. A key has
several aggregates (a stream, its mark stream, the reader group whose state it has, a table of the same name), and any
one of them that is at work holds up the requests of all.

Nothing else does. What is only noted on a stream has a queue of its own, which nothing holds up. So have batches of
commits and aborts of transactions: an abort that the seal of the stream requests does not wait behind that seal.
"""

from collections.abc import Iterator
from typing import Any

from sluice.domain import names
from sluice.domain.commands import Command
from sluice.domain.ids import GroupId, StreamId, TableId
from sluice.domain.stream.commands import Report
from sluice.domain.stream.state import Stream
from sluice.domain.workflow import running
from sluice.engine.fold import PartitionView
from sluice.engine.ports import Clock
from sluice.kafka.topics import REQUESTS_STREAMS, topic_of

_PREFIXES = ("", names.MARK_PREFIX, names.MARK_PREFIX * 2)
"""What stands before a stream's name in that of its mark stream, and of one that is requested by such a name."""


class KeyQueues:
    """See Blockers of the engine."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def ahead_of(self, view: PartitionView, command: Command) -> str | None:
        """See Blockers."""
        return None if isinstance(command, Report) else self.at_work(view, command)

    def at_work(self, view: PartitionView, command: Command) -> str | None:
        """See Blockers."""
        if topic_of(command) is not REQUESTS_STREAMS:
            what = self._doing(view.get(command.aggregate))
            return f"{what} there" if what else None
        under_way = view.under_way()
        if not under_way:
            return None
        found = [a for a in aggregates_of(command.key) if a in under_way and self._doing(view.get(a))]
        if not found:
            return None
        # What comes along with something else, like a mark stream that is being created, is no earlier than that.
        first = min(found, key=under_way.__getitem__)
        what = self._doing(view.get(first))
        return f"{what} there" if first == command.aggregate else f"{first}: {what}"

    def _doing(self, state: Any) -> str:
        workflow = running(state)
        if workflow is not None:
            return f"{workflow.kind.value} runs"
        queued = state.waiting if isinstance(state, Stream) else None
        return f"{queued.kind} is queued" if queued is not None and queued.is_current(self._clock.now_ms()) else ""


def aggregates_of(key: str) -> Iterator[str]:
    """All aggregates whose requests stand in the queue of a key."""
    scope, slash, resource = key.partition("/")
    if not slash:
        yield names.scope_aggregate(key)
        return
    if resource.startswith(names.READER_GROUP_PREFIX):
        yield GroupId(scope, resource.removeprefix(names.READER_GROUP_PREFIX)).aggregate
    for prefix in _PREFIXES:
        yield StreamId(scope, prefix + resource).aggregate
    yield TableId(scope, resource).aggregate
