"""What the requests of a key wait behind, as far as the view shows it.

Requests to stream-workflows are handled one after the other by key: they stand in the key's *lane*. One that has begun
a workflow holds the lane until that has ended, and one that waits for a batch of commits holds it meanwhile. A key has
several aggregates (a stream, its mark stream, the reader group whose state it has, a table of the same name), and any
one of them that is at work holds up the requests of all.

Nothing else does: a scope's workflow runs beside the scope's requests, batches of commits and aborts of transactions
have lanes of their own, and so an abort that the seal of the stream asks for does not wait behind that seal.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from sluice.domain import names
from sluice.domain.commands import Command
from sluice.domain.stream.state import Stream
from sluice.domain.transaction.batch import YIELD_MS
from sluice.domain.workflow import running
from sluice.journal.journal import now_ms
from sluice.journal.partition_view import PartitionView
from sluice.messaging.topics import REQUESTS_STREAMS, topic_of

_SCOPES = "scope:"
_MARKS = ("", names.MARK_PREFIX, names.MARK_PREFIX * 2)
"""What stands before a stream's name in that of its mark stream, and of one that is asked for by such a name."""


class AtWork(msgspec.Struct, frozen=True):
    """An aggregate, and for people what it is doing."""

    aggregate: str
    what: str

    def beside(self, command: Command) -> str:
        """For people who wonder why nothing has come of a command."""
        return f"{self.what} there" if self.aggregate == command.aggregate else f"{self.aggregate}: {self.what}"


def ahead_of(view: PartitionView, command: Command) -> AtWork | None:
    """What is known to keep a command that was sent, so that one more of it would only wait there, too."""
    return None if command.aggregate.startswith(_SCOPES) else at_work(view, command)


def at_work(view: PartitionView, command: Command) -> AtWork | None:
    """What runs where a command goes to, whether that keeps it or not; `view` is that of its key."""
    if topic_of(command) is not REQUESTS_STREAMS or command.aggregate.startswith(_SCOPES):
        what = _doing(view.get(command.aggregate))
        return AtWork(command.aggregate, what) if what else None
    under_way = view.under_way()
    if not under_way:
        return None
    found = [AtWork(a, what) for a in aggregates_of(command.key) if a in under_way and (what := _doing(view.get(a)))]
    # What comes along with something else, like a mark stream that is being created, is no earlier than that.
    return min(found, key=lambda one: under_way[one.aggregate], default=None)


def aggregates_of(key: str) -> Iterator[str]:
    """All aggregates whose requests stand in the lane of a key that is not that of a scope."""
    scope, _, thing = key.partition("/")
    if thing.startswith(names.READER_GROUP_PREFIX):
        yield names.group_aggregate(scope, thing.removeprefix(names.READER_GROUP_PREFIX))
    for marks in _MARKS:
        yield names.stream_aggregate(scope, marks + thing)
    yield names.table_aggregate(scope, thing)


def _doing(state: Any) -> str:
    """A request that waits for a batch says so again and again; when it no longer does it is not there any more."""
    workflow = running(state)
    if workflow is not None:
        return f"{workflow.kind.value} runs"
    waiting = state.waiting if isinstance(state, Stream) else None
    return f"{waiting.kind} waits its turn" if waiting is not None and now_ms() - waiting.at < YIELD_MS else ""
