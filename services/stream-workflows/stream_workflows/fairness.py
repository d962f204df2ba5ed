"""Fairness between workflows and commits: a stream has one or the other, and neither may starve the other.

A request that finds a batch running says so in the journal, and the next batch lets it go first. A request that comes
right after a workflow, while commits wait, lets one batch go first. This turn is kept in memory, not in the journal,
and waits one second at most, in case no instance carries out commits.
"""

from collections.abc import Callable
from contextlib import suppress

from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import StreamId
from sluice.domain.stream.commands import ScaleStream, SealStream, StreamCommand, TruncateStream, UpdateStream
from sluice.domain.stream.decide import record_queued_behind_batch, record_queued_once
from sluice.domain.stream.state import YIELD_MS, find_stream
from sluice.domain.transaction.batch import find_commits
from sluice.domain.transaction.index import transactions_of
from sluice.domain.workflow import running
from sluice.engine.journal import Journal, JournalError

REPEAT_S = YIELD_MS / 2000
"""A waiting request renews its record this often, so that commits do not start to ignore it."""

COMMITS_FIRST_S = 1.0
"""How long a request waits at most for a batch that may not come."""


ExclusiveCommand = UpdateStream | ScaleStream | TruncateStream | SealStream
"""What begins a workflow on a stream that commits may be waiting for."""


class Fairness:
    """Belongs to the event loop. `_after` has the streams on which a workflow has just ended while commits waited."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._after: dict[str, int] = {}

    def ended(self, command: ExclusiveCommand) -> None:
        """What the command has begun on its stream has ended: if commits wait, a batch is next."""
        reader = self._journal.reader(command.key)
        if transactions_of(reader, command.stream_id).committing:
            self._after[command.key] = _batches(reader, command.stream_id)

    async def commits_first(self, command: ExclusiveCommand) -> None:
        """Let one batch begin if a batch is next."""
        before = self._after.pop(command.key, None)
        if before is None:
            return
        stream = command.stream_id

        def holds(view: Reader) -> bool:
            return _batches(view, stream) != before or not transactions_of(view, stream).committing

        await self._until(command.key, COMMITS_FIRST_S, holds)

    async def wait(self, command: StreamCommand) -> None:
        """Return when the stream is free, or after a while. Raises JournalError."""
        stream = command.stream_id

        def note(reader: Reader, context: Context) -> Decision:
            return record_queued_behind_batch(reader, stream, type(command).__name__, context)

        await self._journal.propose(command.key, note)
        await self._until(command.key, REPEAT_S, lambda view: _is_free(view, stream))

    async def record_queued(self, command: ExclusiveCommand) -> None:
        """Show on the stream that the request waits for something outside. If the journal is away it does not show."""
        stream = command.stream_id

        def note(reader: Reader, context: Context) -> Decision:
            return record_queued_once(reader, stream, type(command).__name__, context)

        with suppress(JournalError):
            await self._journal.propose(command.key, note)

    async def _until(self, key: str, most_s: float, holds: Callable[[Reader], bool]) -> None:
        with suppress(JournalError):
            await self._journal.until(key, holds, most_s)


def _batches(reader: Reader, id: StreamId) -> int:
    commits = find_commits(reader, id)
    return commits.batches if commits is not None else 0


def _is_free(reader: Reader, id: StreamId) -> bool:
    return running(find_stream(reader, id)) is None and running(find_commits(reader, id)) is None
