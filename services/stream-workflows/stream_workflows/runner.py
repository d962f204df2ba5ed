"""Sees a stream's workflow through: its steps, the waiting between attempts, the last record.

There is one runner per key at a time (the keyed consumer sees to that). It keeps nothing: after a crash the workflow
stands in the journal, and whoever owns the partition next begins its idempotent steps again. Attempts are unbounded,
but visible: every doubling of their number is noted in the journal with the last error.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Any

from sluice.domain.commands import ReleaseStreamName
from sluice.domain.decision import Context, Decision
from sluice.domain.names import scope_aggregate, stream_key
from sluice.domain.scope import Scope
from sluice.domain.stream import decide
from sluice.domain.stream.state import Stream, find_stream
from sluice.journal.journal import JournalError, now_ms
from sluice.journal.partition_view import GuardedReader, PartitionView
from sluice.messaging.keyed_consumer import Delivery
from sluice.messaging.producer import ProduceError
from sluice.segmentstore.errors import SegmentStoreError
from sluice.segmentstore.store import SegmentStore
from sluice.telemetry import metrics
from stream_workflows.backoff import delays
from stream_workflows.crash_points import CrashPoints
from stream_workflows.sending import Sender
from stream_workflows.steps import WORKFLOWS, Record, Step, mark_of

log = logging.getLogger(__name__)

RELEASE_AGAIN_S = 2.0


class Runner:
    def __init__(self, sender: Sender, store: SegmentStore, crash_points: CrashPoints) -> None:
        self._sender = sender
        self._journal = sender.journal
        self.store = store
        self._crash_points = crash_points

    async def run(self, scope: str, name: str, delivery: Delivery) -> None:
        """Return when the stream has no workflow any more."""
        waits = delays()
        attempts = 0
        while (stream := self._running(scope, name)) is not None:
            assert stream.workflow is not None
            kind, since = stream.workflow.kind, stream.workflow.since
            progress = [kind.value]
            try:
                await self._attempt(stream, WORKFLOWS[kind], progress)
                metrics.WORKFLOW_SECONDS.labels(kind.value).observe((now_ms() - since) / 1000)
                attempts, waits = 0, delays()
            except Exception as error:
                attempts += 1
                metrics.WORKFLOW_RETRIES.labels(kind.value).inc()
                facts = {"scope": scope, "stream": name, "workflow": kind.value, "step": progress[-1]}
                foreseen = isinstance(error, SegmentStoreError | JournalError | ProduceError)
                log.warning(
                    "workflow step failed",
                    extra={**facts, "attempts": attempts, "error": repr(error)},
                    exc_info=None if foreseen else error,
                )
                async with delivery.waiting():
                    await self._note(stream, progress[-1], attempts, error)
                    await asyncio.sleep(next(waits))

    def _running(self, scope: str, name: str) -> Stream | None:
        stream = find_stream(self._journal.reader(stream_key(scope, name)), scope, name)
        return stream if stream is not None and stream.workflow is not None else None

    async def _attempt(self, stream: Stream, steps: tuple[Step, ...], progress: list[str]) -> None:
        assert stream.workflow is not None
        kind, request = stream.workflow.kind, stream.workflow.request
        mark = mark_of(self._journal.reader(stream_key(stream.scope, stream.name)), stream)
        for step in steps:
            progress.append(step.name)
            self._crash_points.passed(f"{kind.value}/before-{step.name}")
            outcome = await step.carry_out(self, stream, mark)
            self._crash_points.passed(f"{kind.value}/after-{step.name}")
            if step.record is not None:
                await self._record(stream, request, step.record, outcome)
                self._crash_points.passed(f"{kind.value}/recorded-{step.name}")

    async def _record(self, stream: Stream, request: str | None, record: Record, outcome: Any) -> None:
        """Append what a step brought about; a record that stands there already is not made again."""
        scope, name = stream.scope, stream.name
        executed = await self._journal.execute(
            stream_key(scope, name), request, lambda reader, _context: record(reader, scope, name, outcome)
        )
        if executed.decision is not None:
            await self._sender.send_all(request or stream.incarnation, executed.decision.sends)

    async def release(self, command: ReleaseStreamName) -> None:
        """Ask the scope's key to drop the name and return when it has."""

        def dropped(view: PartitionView) -> bool:
            scope = view.get(scope_aggregate(command.scope))
            entry = scope.streams.get(command.stream) if isinstance(scope, Scope) else None
            return entry is None or entry.incarnation != command.incarnation

        while not dropped(self._journal.reader(command.scope)):
            await self._sender.send_all(command.incarnation, (command,))
            with suppress(TimeoutError):
                async with asyncio.timeout(RELEASE_AGAIN_S):
                    await self._journal.until(command.scope, dropped)

    async def _note(self, stream: Stream, step: str, attempts: int, error: Exception) -> None:
        """Tell people; should the journal be what fails, the log has said so already."""
        if attempts < 2 or attempts & (attempts - 1) or stream.workflow is None:
            return
        scope, name, kind = stream.scope, stream.name, stream.workflow.kind
        text = f"{type(error).__name__}: {error}"

        def note(reader: GuardedReader, _context: Context) -> Decision:
            return decide.decide_step_failed(reader, scope, name, kind, step, attempts, text)

        with suppress(JournalError):
            await self._journal.execute(stream_key(scope, name), None, note)
