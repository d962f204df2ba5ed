"""Sees an aggregate's workflow through: its steps, the waiting between attempts, the last record.

There is one runner per key at a time (the keyed consumer sees to that). It keeps nothing: after a crash the workflow
stands in the journal, and whoever owns the partition next begins its idempotent steps again. Attempts are unbounded,
but visible: every doubling of their number is noted in the journal with the last error.
"""

import asyncio
import logging
from contextlib import suppress
from typing import Any, Generic

from sluice.domain.aggregates import cancel
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.names import key_of
from sluice.domain.workflow import Workflow, WorkflowKind, can_cancel, decide_step_failed, running
from sluice.journal.journal import Journal, JournalError, now_ms
from sluice.journal.partition_view import GuardedReader, PartitionView
from sluice.messaging.keyed_consumer import Delivery
from sluice.messaging.producer import ProduceError
from sluice.segmentstore.errors import SegmentStoreError
from sluice.telemetry import metrics, tracing
from sluice.workflows.backoff import delays
from sluice.workflows.crash_points import CrashPoints
from sluice.workflows.steps import Record, ToolsT, Workflows

log = logging.getLogger(__name__)


class UnendedError(Exception):
    """The last step of a workflow has not ended it: tried again like a step that failed, so that it shows."""


def _span(name: str, aggregate: str) -> tracing.Span:
    return tracing.child(name, "internal", {"sluice.aggregate": aggregate}) if tracing.is_on() else tracing.NOTHING


def _cancel(reader: Reader, context: Context, state: Any, _outcome: Any) -> Decision:
    return cancel(reader, context, state)


class Runner(Generic[ToolsT]):
    """Runs the kinds of workflows in its table; those of other kinds are for another service to see through."""

    def __init__(
        self, journal: Journal, workflows: Workflows[ToolsT], tools: ToolsT, crash_points: CrashPoints
    ) -> None:
        self._journal = journal
        self._workflows = workflows
        self._tools = tools
        self._crash_points = crash_points

    def workflow_of(self, state: Any) -> Workflow | None:
        """The workflow of an aggregate of this state, if there is one and it is of a kind that runs here."""
        workflow = running(state)
        return workflow if workflow is not None and workflow.kind in self._workflows else None

    async def run(self, aggregate: str, delivery: Delivery) -> None:
        """Return when the aggregate has no workflow any more that runs here."""
        waits = delays()
        attempts = 0
        while (workflow := self.workflow_of(self._state(aggregate))) is not None:
            kind, since = workflow.kind, workflow.since
            progress = [""]
            try:
                with tracing.within(_span(f"workflow {kind.value}", aggregate)):
                    await self._attempt(aggregate, workflow, progress)
                metrics.WORKFLOW_SECONDS.labels(kind.value).observe((now_ms() - since) / 1000)
                attempts, waits = 0, delays()
            except Exception as error:  # noqa: BLE001 - whatever it is, the workflow must go on, and show it
                attempts += 1
                self._tell(aggregate, kind, progress[0], attempts, error)
                async with delivery.waiting():
                    await self._note(aggregate, kind, progress[0], attempts, error)
                    await self._wait(aggregate, workflow.kicks, next(waits))

    async def _wait(self, aggregate: str, kicks: int, seconds: float) -> None:
        """Return after a while, or as soon as somebody kicks or cancels the workflow."""

        def wanted(view: PartitionView) -> bool:
            workflow = running(view.get(aggregate))
            return workflow is None or workflow.cancelled or workflow.kicks != kicks

        try:
            async with asyncio.timeout(seconds):
                await self._journal.until(key_of(aggregate), wanted)
        except TimeoutError:
            return
        except JournalError:
            await asyncio.sleep(seconds)

    def _state(self, aggregate: str) -> Any:
        return self._journal.reader(key_of(aggregate)).get(aggregate)

    async def _attempt(self, aggregate: str, workflow: Workflow, progress: list[str]) -> None:
        kind = workflow.kind
        for step in self._workflows[kind]:
            progress[0] = step.name
            self._crash_points.passed(f"{kind.value}/before-{step.name}")
            state = self._state(aggregate)
            if running(state) is not workflow:
                return
            if workflow.cancelled and can_cancel(state):
                await self._record(aggregate, workflow, _cancel, state, None)
                return
            with tracing.within(_span(f"step {step.name}", aggregate)):
                outcome = await step.carry_out(self._tools, state)
            self._crash_points.passed(f"{kind.value}/after-{step.name}")
            if step.record is not None:
                await self._record(aggregate, workflow, step.record, state, outcome)
                self._crash_points.passed(f"{kind.value}/recorded-{step.name}")
        if running(self._state(aggregate)) is workflow:
            raise UnendedError(f"all steps of {kind.value} are done, but it has not ended")

    async def _record(self, aggregate: str, workflow: Workflow, record: Record, state: Any, outcome: Any) -> None:
        """Append what a step brought about; a record that stands there already is not made again.

        Nor is one of a workflow that somebody else has ended meanwhile: the next one may be of the same kind.
        """

        def decide(reader: Reader, context: Context) -> Decision:
            if running(reader.get(aggregate)) is not workflow:
                return Decision()
            return record(reader, context, state, outcome)

        # A record of a request that was answered before would be void.
        request = workflow.request
        if request is not None and self._journal.reader(key_of(aggregate)).answer(request) is not None:
            request = None
        await self._journal.execute(key_of(aggregate), request, decide)

    def _tell(self, aggregate: str, kind: WorkflowKind, step: str, attempts: int, error: Exception) -> None:
        metrics.WORKFLOW_RETRIES.labels(kind.value).inc()
        foreseen = isinstance(error, SegmentStoreError | JournalError | ProduceError)
        facts = {"aggregate": aggregate, "workflow": kind.value, "step": step, "attempts": attempts}
        log.warning("workflow step failed", extra={**facts, "error": repr(error)}, exc_info=None if foreseen else error)

    async def _note(self, aggregate: str, kind: WorkflowKind, step: str, attempts: int, error: Exception) -> None:
        """Tell people; should the journal be what fails, the log has said so already."""
        if attempts < 2 or attempts & (attempts - 1):
            return
        text = f"{type(error).__name__}: {error}"

        def note(reader: GuardedReader, _context: Context) -> Decision:
            return decide_step_failed(reader, aggregate, kind, step, attempts, text)

        with suppress(JournalError):
            await self._journal.execute(key_of(aggregate), None, note)
