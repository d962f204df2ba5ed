"""Runs an aggregate's workflow to completion: its steps, the waiting between attempts, the last record.

There is one runner per key at a time (the consumer's executor sees to that). It keeps nothing: after a crash the
workflow stands in the journal, and the next owner of the partition begins its idempotent steps anew. Attempts are
unbounded, but visible: every doubling of their number is recorded in the journal with the last error. A step with
unmet dependencies (`sluice.engine.dependencies`) is carried out once more when they are met, and shows as well.

A *limit* bounds how many steps are carried out at once. It is held for nothing else: what waits for the journal, for
other keys or for its next attempt takes no place in it.
"""

import asyncio
import logging
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from typing import Any, Generic

from sluice.engine.crash_points import CrashPoints
from sluice.engine.decision import Context, Decision, Reader
from sluice.engine.dependencies import Blockers, Dependencies, DependenciesPending, SendRequest
from sluice.engine.fold import PartitionView
from sluice.engine.journal import Journal, JournalError
from sluice.engine.offsets import RequestFacts
from sluice.engine.ports import SendError
from sluice.engine.retry import delays
from sluice.engine.step import InputRecord, Step, StepContextT, Workflows
from sluice.engine.workflow import WorkflowRules
from sluice.exceptions import in_words
from sluice.telemetry import metrics, tracing

log = logging.getLogger(__name__)

Limit = AbstractAsyncContextManager[None]
"""What bounds how many steps are carried out at once, each of which enters it; an `asyncio.Semaphore` is one."""

MIN_ALIKE = 16
"""After so many attempts that ended alike, which take some 45 s, operators see that the trouble may not pass."""


class UnendedError(Exception):
    """The last step of a workflow has not ended it: tried once more like a step that failed, so that it shows."""


def _span(name: str, aggregate: str) -> tracing.Span:
    return tracing.child(name, "internal", {"sluice.aggregate": aggregate}) if tracing.is_on() else tracing.NOTHING


class _Attempts:
    """Those that failed since the last progress; the last `alike` of them with the same kind of error."""

    def __init__(self) -> None:
        self.count = 0
        self.alike = 0
        self._error: type[Exception] | None = None

    def failed(self, error: Exception) -> None:
        self.count += 1
        self.alike = self.alike + 1 if type(error) is self._error else 1
        self._error = type(error)

    def in_words(self, error: Exception) -> str:
        """The last error, and whether it looks like a passing one."""
        text = in_words(error)
        if self.alike >= MIN_ALIKE:
            text += f"; each of the last {self.alike} attempts ended like this"
        return text


class Runner(Generic[StepContextT]):
    """Runs the kinds of workflows in its table; those of other kinds are for another service.

    `send` sends what steps need of other keys; None if none of them needs anything. `foreseen` is what a step raises
    when an outside system does not serve: worth a line in the log, not a stack trace.
    """

    def __init__(
        self,
        journal: Journal,
        rules: WorkflowRules,
        workflows: Workflows[StepContextT],
        step_context: StepContextT,
        crash_points: CrashPoints,
        send: SendRequest | None = None,
        blockers: Blockers | None = None,
        foreseen: type[Exception] | None = None,
    ) -> None:
        self._journal = journal
        self._rules = rules
        self._workflows = workflows
        self._step_context = step_context
        self._crash_points = crash_points
        self._send = send
        self._blockers = blockers
        self._foreseen = (JournalError, SendError, *((foreseen,) if foreseen is not None else ()))

    def workflow_of(self, state: Any) -> Any:
        """The workflow of an aggregate of this state, if there is one and it is of a kind that runs here."""
        workflow = self._rules.running(state)
        return workflow if workflow is not None and workflow.kind in self._workflows else None

    async def run_to_completion(self, aggregate: str, limit: Limit) -> None:
        """Return when the aggregate has no workflow any more that runs here."""
        waits = delays(chance=self._journal.chance)
        attempts = _Attempts()
        dependencies: Dependencies | None = None
        try:
            while (workflow := self.workflow_of(self._state(aggregate))) is not None:
                kind, since, seen = workflow.kind, workflow.since, (workflow.retry_requests, workflow.cancelled)
                progress = [""]
                if dependencies is None:
                    dependencies = self._dependencies(aggregate, workflow)
                elif dependencies.workflow.id != workflow.id:
                    dependencies.forget()
                    dependencies = self._dependencies(aggregate, workflow)
                try:
                    with tracing.within(_span(f"workflow {kind.value}", aggregate)):
                        await self._attempt(aggregate, dependencies, limit, progress)
                    now_ms = self._journal.clock.now_ms()
                    metrics.WORKFLOW_SECONDS.labels(kind.value).observe((now_ms - since) / 1000)
                    attempts, waits = _Attempts(), delays(chance=self._journal.chance)
                except Exception as error:  # noqa: BLE001 - whatever it is, the workflow must go on, and show it
                    attempts.failed(error)
                    self._report(aggregate, kind, progress[0], attempts.count, error)
                    if attempts.count >= 2 and not attempts.count & (attempts.count - 1):
                        text = attempts.in_words(error)
                        await self._record_step(aggregate, kind, progress[0], attempts.count, text)
                    await self._wait(aggregate, seen, next(waits))
        finally:
            if dependencies is not None:
                dependencies.forget()

    def _dependencies(self, aggregate: str, workflow: Any) -> Dependencies:
        return Dependencies(self._journal, self._rules, self._send, self._blockers, aggregate, workflow)

    async def _wait(self, aggregate: str, seen: tuple[int, bool], seconds: float) -> None:
        """Return after a while, or as soon as the workflow is retried or cancelled beyond what was `seen`."""

        def is_wanted(view: PartitionView) -> bool:
            workflow = self._rules.running(view.get(aggregate))
            return workflow is None or (workflow.retry_requests, workflow.cancelled) != seen

        try:
            await self._journal.until(self._rules.key_of(aggregate), is_wanted, seconds)
        except JournalError:
            await asyncio.sleep(seconds)

    def _state(self, aggregate: str) -> Any:
        return self._journal.reader(self._rules.key_of(aggregate)).get(aggregate)

    def _running(self, state: Any, workflow: Any) -> Any:
        """The workflow as it is now; None if it has ended."""
        running = self._rules.running(state)
        return running if running is not None and running.id == workflow.id else None

    async def _attempt(self, aggregate: str, dependencies: Dependencies, limit: Limit, progress: list[str]) -> None:
        workflow, kind = dependencies.workflow, dependencies.workflow.kind
        for step in self._workflows[kind]:
            progress[0] = step.name
            self._crash_points.passed(f"{kind.value}/before-{step.name}")
            with tracing.within(_span(f"step {step.name}", aggregate)):
                done = await self._carry_out(step, aggregate, dependencies, limit)
            if done is None:
                return
            state, outcome = done
            self._crash_points.passed(f"{kind.value}/after-{step.name}")
            if step.record is not None:
                await self._record(aggregate, workflow, step.record, state, outcome)
                self._crash_points.passed(f"{kind.value}/recorded-{step.name}")
        if self._running(self._state(aggregate), workflow) is not None:
            raise UnendedError(f"all steps of {kind.value} are done, but it has not ended")

    async def _carry_out(
        self, step: Step[StepContextT], aggregate: str, dependencies: Dependencies, limit: Limit
    ) -> tuple[Any, Any] | None:
        """The state that the step was carried out for, and the outcome; None if the workflow has ended meanwhile."""
        workflow = dependencies.workflow
        while True:
            try:
                async with limit if step.is_limited else nullcontext():
                    state = self._state(aggregate)
                    running = self._running(state, workflow)
                    if running is None:
                        return None
                    if not self._rules.is_cancelled(state):
                        return state, await step.carry_out(self._step_context, state)
            except DependenciesPending as pending:
                await self._wait_for(step.name, aggregate, dependencies, pending)
            else:
                await self._record(aggregate, workflow)
                return None

    async def _wait_for(
        self, step: str, aggregate: str, dependencies: Dependencies, pending: DependenciesPending
    ) -> None:
        """Return when the step is worth to be carried out once more."""
        if dependencies.is_due_for_record():
            kind, text = dependencies.workflow.kind, dependencies.describe(pending.unmet)
            facts = {"aggregate": aggregate, "workflow": kind.value, "step": step, "why": text}
            log.info("workflow waits", extra=facts)
            await self._record_step(aggregate, kind, step, 0, text)
        await dependencies.wait_for(pending.unmet, self._rules.key_of(aggregate))

    async def _record(
        self, aggregate: str, workflow: Any, record: InputRecord | None = None, state: Any = None, outcome: Any = None
    ) -> None:
        """Append what a step brought about, if the workflow still runs: the next one may be of the same kind.

        The end of one that is cancelled is appended instead.
        """

        def decide(reader: Reader, context: Context) -> Decision:
            present = reader.get(aggregate)
            running = self._running(present, workflow)
            if running is not None and self._rules.is_cancelled(present):
                return self._rules.cancel(reader, context, present)
            if running is None or record is None:
                return Decision()
            return record(reader, context, state, outcome)

        await self._journal.propose(self._rules.key_of(aggregate), decide, RequestFacts(workflow.request))

    def _report(self, aggregate: str, kind: Any, step: str, attempts: int, error: Exception) -> None:
        metrics.WORKFLOW_RETRIES.labels(kind.value).inc()
        is_foreseen = isinstance(error, self._foreseen)
        facts = {"aggregate": aggregate, "workflow": kind.value, "step": step, "attempts": attempts}
        log.warning(
            "workflow step failed", extra={**facts, "error": in_words(error)}, exc_info=None if is_foreseen else error
        )

    async def _record_step(self, aggregate: str, kind: Any, step: str, attempts: int, text: str) -> None:
        """For operators; if the journal itself fails, the log has it already."""

        def record(reader: Reader, _context: Context) -> Decision:
            return self._rules.step_failed(reader, aggregate, kind, step, attempts, text)

        with suppress(JournalError):
            await self._journal.propose(self._rules.key_of(aggregate), record)
