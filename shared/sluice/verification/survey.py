"""Looks through segments, batch after batch, and reports what differs from the journal.

The stores change while they are asked. So a difference counts only if it holds against the journal before the question
and behind the answer, and once more when the segment was asked a second time: what a workflow changes meanwhile is
under way in one of these states, and a store that lost its container in between is not asked again. Memory is that of a
batch. Belongs to one event loop; one batch at a time.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from typing import Protocol

import msgspec

from sluice.engine.fold import PartitionView
from sluice.pravega.errors import SegmentStoreError
from sluice.pravega.store import SegmentStore
from sluice.verification.comparing import Info, Problem, in_journal, in_store, problems
from sluice.verification.expected import Expectations, Expected
from sluice.verification.questions import Answer, Questions
from sluice.verification.repairing import NotEmptyError, Operation, Repair, carry_out, repair_of
from sluice.verification.subjects import Subject

BATCH = 2_000
"""Segments whose answers are compared behind one barrier."""

QUESTIONS = 2
"""How often a segment is asked about before a difference is reported."""


class Follower(Protocol):
    """Follows one partition of the journal."""

    @property
    def view(self) -> PartitionView: ...

    async def catch_up(self) -> None:
        """Fold all that was acknowledged before this call."""


class Finding(msgspec.Struct, frozen=True, tag="finding", tag_field="type", rename="camel"):
    """`of` is the stream or table; `journal` and `store` say what each of them has, `repair` what was done or why not.

    `repaired` is whether the store now has what the journal says; None if repairing was not requested.
    """

    of: str
    segment: str
    problem: Problem
    journal: str
    store: str
    repair: str
    repaired: bool | None = None


class NotAnswered(msgspec.Struct, frozen=True, tag="not-answered", tag_field="type", rename="camel"):
    """No store said anything of the segment."""

    of: str
    segment: str
    reason: str


class UnderWay(msgspec.Struct, frozen=True, tag="under-way", tag_field="type", rename="camel"):
    """A workflow is changing these segments, so less was expected of them."""

    of: str
    workflow: str
    segments: int


Report = Finding | NotAnswered | UnderWay


class Survey:
    """`segments` counts those looked through; `repairs` carries out what is safe."""

    def __init__(self, follower: Follower, store: SegmentStore, questions: Questions, *, repairs: bool = False) -> None:
        self._follower = follower
        self._store = store
        self._questions = questions
        self._repairs = repairs
        self.segments = 0

    async def run(self, subjects: Iterable[Subject], batch: int = BATCH) -> AsyncIterator[Report]:
        """All reports on these segments. Each is compared with the state of the journal that its batch finds."""
        left = iter(subjects)
        while taken := list(islice(left, batch)):
            for report in await self._examine(taken):
                yield report
            self.segments += len(taken)

    async def _examine(self, subjects: list[Subject]) -> list[Report]:
        reports: list[Report] = []
        suspects: dict[Subject, frozenset[Problem]] = dict.fromkeys(subjects, frozenset(Problem))
        before = self._expected(suspects)
        reports.extend(_under_way(before))
        answers: dict[Subject, Answer] = {}
        for _ in range(QUESTIONS):
            answers = await self._questions.ask(s for s in suspects if before[s].exists is not None)
            reports.extend(NotAnswered(str(s.of), s.name, a.failure) for s, a in answers.items() if a.failure)
            await self._follower.catch_up()
            behind = self._expected(answers)
            suspects = {
                s: found
                for s, a in answers.items()
                if not a.failure and (found := suspects[s] & problems(before[s], a.info) & problems(behind[s], a.info))
            }
            before = behind
            if not suspects:
                break
        for subject, found in suspects.items():
            info = answers[subject].info
            reports.extend([await self._report(subject, problem, before[subject], info) for problem in sorted(found)])
        return reports

    def _expected(self, subjects: Iterable[Subject]) -> dict[Subject, Expected]:
        expectations = Expectations(self._follower.view)
        return {subject: expectations.of(subject) for subject in subjects}

    async def _report(self, subject: Subject, problem: Problem, expected: Expected, info: Info | None) -> Finding:
        repair = repair_of(subject, problem, expected, info)
        finding = Finding(
            of=str(subject.of),
            segment=subject.name,
            problem=problem,
            journal=in_journal(expected),
            store=in_store(info),
            repair=_proposed(repair),
        )
        if not self._repairs:
            return finding
        if repair.operation is Operation.NOTHING:
            return msgspec.structs.replace(finding, repaired=False)
        said, repaired = await self._repair(subject, problem, repair)
        return msgspec.structs.replace(finding, repair=said, repaired=repaired)

    async def _repair(self, subject: Subject, problem: Problem, repair: Repair) -> tuple[str, bool]:
        """Carry it out if the finding still holds; what was done, and whether the difference is gone."""
        await self._follower.catch_up()
        expected = self._expected((subject,))[subject]
        (answer,) = (await self._questions.ask((subject,))).values()
        if answer.failure:
            return f"not repaired: {answer.failure}", False
        still = problem in problems(expected, answer.info)
        if not still or repair_of(subject, problem, expected, answer.info).operation is not repair.operation:
            return "not repaired: it is no longer so", not still
        try:
            await carry_out(self._store, subject, repair.operation, expected)
        except (SegmentStoreError, NotEmptyError) as error:
            return f"not repaired: {error}", False
        (after,) = (await self._questions.ask((subject,))).values()
        gone = not after.failure and problem not in problems(expected, after.info)
        return f"{repair.operation}: {repair.reason}", gone


def _proposed(repair: Repair) -> str:
    if repair.operation is Operation.NOTHING:
        return f"not repaired: {repair.reason}"
    return f"can be {repair.operation}: {repair.reason}"


def _under_way(expected: dict[Subject, Expected]) -> Iterator[UnderWay]:
    counts: dict[tuple[str, str], int] = {}
    for subject, each in expected.items():
        if each.under_way:
            key = (str(subject.of), each.under_way)
            counts[key] = counts.get(key, 0) + 1
    return (UnderWay(of, workflow, count) for (of, workflow), count in counts.items())
