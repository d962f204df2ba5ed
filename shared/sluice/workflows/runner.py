"""Sees an aggregate's workflow through: its steps, the waiting between attempts, the last record.

There is one runner per key at a time (the keyed consumer sees to that). It keeps nothing: after a crash the workflow
stands in the journal, and whoever owns the partition next begins its idempotent steps again. Attempts are unbounded,
but visible: every doubling of their number is noted in the journal with the last error. A step that waits for other
keys (`sluice.workflows.waiting`) is carried out again when what it needs is there, and shows as well.
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
from sluice.workflows.steps import Record, Step, ToolsT, Workflows
from sluice.workflows.waiting import Ask, StillWaiting, Waiting

log = logging.getLogger(__name__)


class UnendedError(Exception):
    """The last step of a workflow has not ended it: tried again like a step that failed, so that it shows."""


def _span(name: str, aggregate: str) -> tracing.Span:
    return tracing.child(name, "internal", {"sluice.aggregate": aggregate}) if tracing.is_on() else tracing.NOTHING


def _told(error: Exception) -> str:
    """For people; with nothing in it that a record cannot hold."""
    return f"{type(error).__name__}: {error}".encode(errors="replace").decode()


def _cancel(reader: Reader, context: Context, state: Any, _outcome: Any) -> Decision:
    return cancel(reader, context, state)


class Runner(Generic[ToolsT]):
    """Runs the kinds of workflows in its table; those of other kinds are for another service to see through.

    `ask` sends what steps need of other keys; None if none of them needs anything.
    """

    def __init__(
        self,
        journal: Journal,
        workflows: Workflows[ToolsT],
        tools: ToolsT,
        crash_points: CrashPoints,
        ask: Ask | None = None,
    ) -> None:
        self._journal = journal
        self._workflows = workflows
        self._tools = tools
        self._crash_points = crash_points
        self._ask = ask

    def workflow_of(self, state: Any) -> Workflow | None:
        """The workflow of an aggregate of this state, if there is one and it is of a kind that runs here."""
        workflow = running(state)
        return workflow if workflow is not None and workflow.kind in self._workflows else None

    async def run(self, aggregate: str, delivery: Delivery) -> None:
        """Return when the aggregate has no workflow any more that runs here."""
        waits = delays()
        attempts = 0
        waiting: Waiting | None = None
        while (workflow := self.workflow_of(self._state(aggregate))) is not None:
            kind, since, heard = workflow.kind, workflow.since, (workflow.kicks, workflow.cancelled)
            progress = [""]
            if waiting is None or waiting.workflow is not workflow:
                waiting = Waiting(self._journal, self._ask, aggregate, workflow)
            try:
                with tracing.within(_span(f"workflow {kind.value}", aggregate)):
                    await self._attempt(aggregate, waiting, delivery, progress)
                metrics.WORKFLOW_SECONDS.labels(kind.value).observe((now_ms() - since) / 1000)
                attempts, waits = 0, delays()
            except Exception as error:  # noqa: BLE001 - whatever it is, the workflow must go on, and show it
                attempts += 1
                self._tell(aggregate, kind, progress[0], attempts, error)
                async with delivery.waiting():
                    if attempts >= 2 and not attempts & (attempts - 1):
                        await self._note(aggregate, kind, progress[0], attempts, _told(error))
                    await self._wait(aggregate, heard, next(waits))

    async def _wait(self, aggregate: str, heard: tuple[int, bool], seconds: float) -> None:
        """Return after a while, or as soon as somebody kicks or cancels the workflow beyond what was `heard`."""

        def wanted(view: PartitionView) -> bool:
            workflow = running(view.get(aggregate))
            return workflow is None or (workflow.kicks, workflow.cancelled) != heard

        try:
            async with asyncio.timeout(seconds):
                await self._journal.until(key_of(aggregate), wanted)
        except TimeoutError:
            return
        except JournalError:
            await asyncio.sleep(seconds)

    def _state(self, aggregate: str) -> Any:
        return self._journal.reader(key_of(aggregate)).get(aggregate)

    async def _attempt(self, aggregate: str, waiting: Waiting, delivery: Delivery, progress: list[str]) -> None:
        workflow, kind = waiting.workflow, waiting.workflow.kind
        for step in self._workflows[kind]:
            progress[0] = step.name
            self._crash_points.passed(f"{kind.value}/before-{step.name}")
            with tracing.within(_span(f"step {step.name}", aggregate)):
                done = await self._carry_out(step, aggregate, waiting, delivery)
            if done is None:
                return
            state, outcome = done
            self._crash_points.passed(f"{kind.value}/after-{step.name}")
            if step.record is not None:
                await self._record(aggregate, workflow, step.record, state, outcome)
                self._crash_points.passed(f"{kind.value}/recorded-{step.name}")
        if running(self._state(aggregate)) is workflow:
            raise UnendedError(f"all steps of {kind.value} are done, but it has not ended")

    async def _carry_out(
        self, step: Step[ToolsT], aggregate: str, waiting: Waiting, delivery: Delivery
    ) -> tuple[Any, Any] | None:
        """The state that the step was carried out for, and the outcome; None if the workflow has ended meanwhile."""
        workflow = waiting.workflow
        while True:
            state = self._state(aggregate)
            if running(state) is not workflow:
                return None
            if workflow.cancelled and can_cancel(state):
                await self._record(aggregate, workflow, _cancel, state, None)
                return None
            try:
                return state, await step.carry_out(self._tools, state)
            except StillWaiting as lacking:
                async with delivery.waiting():
                    await self._wait_for(step.name, aggregate, waiting, lacking)

    async def _wait_for(self, step: str, aggregate: str, waiting: Waiting, lacking: StillWaiting) -> None:
        """Return when the step is worth to be carried out again."""
        if waiting.is_worth_a_note():
            kind, text = waiting.workflow.kind, waiting.says(lacking.needs)
            log.info(
                "workflow waits", extra={"aggregate": aggregate, "workflow": kind.value, "step": step, "why": text}
            )
            await self._note(aggregate, kind, step, 0, text)
        await waiting.wait_for(lacking.needs, key_of(aggregate))

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

    async def _note(self, aggregate: str, kind: WorkflowKind, step: str, attempts: int, text: str) -> None:
        """Tell people; should the journal be what fails, the log has said so already."""

        def note(reader: GuardedReader, _context: Context) -> Decision:
            return decide_step_failed(reader, aggregate, kind, step, attempts, text)

        with suppress(JournalError):
            await self._journal.execute(key_of(aggregate), None, note)
