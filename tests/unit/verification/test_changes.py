"""What changes while it is looked at is no finding; silence is no answer."""

import asyncio
from typing import Any

import pytest
from unit.verification.world import CONTAINERS, STREAM, World

from sluice.domain.decision import Decision
from sluice.domain.segment import segment_id, segment_name
from sluice.domain.stream.commands import SealStream, TruncateStream
from sluice.domain.stream.events import StreamScaleCancelled
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import Moment
from sluice.verification.questions import Questions
from sluice.verification.subjects import StreamSegment
from sluice_cli.verification.run import Choice, Summary

FIRST, SECOND = segment_id(1, 2), segment_id(1, 3)
INFO = "GetStreamSegmentInfo"


@pytest.fixture
async def world() -> World:
    found = World()
    await found.create()
    return found


class Meanwhile:
    """Does something before an answer about a segment or behind it: by its number the first, the second and so on."""

    def __init__(self, world: World, moment: Moment, *what: Any, name: str = "") -> None:
        self._moment, self._name = moment, name
        self._left = list(what)
        world.store.fault = self._fault

    @property
    def done(self) -> bool:
        return not self._left

    def _fault(self, moment: Moment, request: str, name: str) -> Any:
        if self.done or request != INFO or moment != self._moment or self._name not in ("", name):
            return None
        return self._left.pop(0)()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_whole_scale_in_between_is_no_finding(world: World, moment: Moment) -> None:
    meanwhile = Meanwhile(world, moment, lambda: world.do(world.split(0)))
    found = await world.verify()
    assert meanwhile.done and not found.findings and world.stream.active == 1


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_truncation_in_between_is_no_finding(world: World, moment: Moment) -> None:
    world.write(0, 100)
    await world.do(world.split(0))
    meanwhile = Meanwhile(world, moment, lambda: world.truncate({FIRST: 0, SECOND: 0, 1: 0}))
    found = await world.verify()
    assert meanwhile.done and not found.findings
    assert segment_name(*STREAM, 0) not in world.store.segments


async def test_a_commit_in_between_is_no_finding(world: World) -> None:
    opened = await world.open()
    meanwhile = Meanwhile(world, "before", lambda: world.commit(opened))
    found = await world.verify()
    assert meanwhile.done and not found.findings


async def test_a_deletion_in_between_is_no_finding(world: World) -> None:
    await world.seal()
    meanwhile = Meanwhile(world, "before", world.delete)
    found = await world.verify()
    assert meanwhile.done and not found.findings


async def test_a_change_at_each_question_is_no_finding(world: World) -> None:
    """Each answer is older than the truncation behind it."""
    world.write(0, 100)
    truncations = (lambda: world.truncate({0: 10, 1: 0}), lambda: world.truncate({0: 20, 1: 0}))
    Meanwhile(world, "after", *truncations, name=segment_name(*STREAM, 0))
    found = await world.verify()
    assert world.stream.cut and not found.findings


async def test_a_finding_that_goes_at_the_second_question_is_none(world: World) -> None:
    world.segment(1).sealed = True
    name = segment_name(*STREAM, 1)
    meanwhile = Meanwhile(world, "before", lambda: None, lambda: world.do(world.split(1)), name=name)
    found = await world.verify()
    assert meanwhile.done and not found.findings


async def test_data_that_come_before_the_seal_of_a_repair_stay(world: World) -> None:
    opened = await world.open()
    for name in world.names(opened):
        world.store.segments[name].data = b"x"
    await world.commit(opened)
    (late, _) = world.names(opened)
    await world.store.create_segment(late, 0, 0)

    def write(moment: Moment, request: str, name: str) -> None:
        if moment == "before" and request == "SealSegment":
            world.store.segments[name].data = b"late"

    world.store.fault = write
    (finding,) = (await world.verify(Choice(repairs=True))).findings
    assert finding.repair == "not repaired: it has 4 bytes" and finding.repaired is False
    assert late in world.store.segments


async def test_a_step_that_is_done_and_not_recorded_is_under_way(world: World) -> None:
    world.begin(world.split(0))
    await world.finish(STREAM.aggregate, before="seal-replaced")
    assert world.segment(0).sealed
    found = await world.verify()
    assert not found.findings
    assert [(u.of, u.workflow) for u in found.under_way] == [("demo/orders", "scale-stream")]


async def test_what_a_scale_leaves_alone_is_compared_all_the_same(world: World) -> None:
    world.begin(world.split(0))
    await world.finish(STREAM.aggregate, before="seal-replaced")
    world.segment(1).sealed = True
    assert (await world.verify()).problems == {"1.#epoch.0": {"SEALED"}}


async def test_a_truncation_that_is_under_way_is_no_finding(world: World) -> None:
    world.write(0, 100)
    await world.do(world.split(0))
    world.begin(TruncateStream(*STREAM, {FIRST: 0, SECOND: 0, 1: 0}))
    found = await world.verify()
    assert not found.findings and {u.workflow for u in found.under_way} == {"truncate-stream"}


async def test_a_seal_that_is_under_way_is_no_finding(world: World) -> None:
    world.begin(SealStream(*STREAM))
    world.segment(0).sealed = True
    found = await world.verify()
    assert not found.findings and {u.workflow for u in found.under_way} == {"seal-stream"}


async def test_a_cancelled_scale_leaves_nothing_to_find(world: World) -> None:
    world.begin(world.split(0))
    await world.store.create_segment(segment_name(*STREAM, FIRST), 0, 0)
    world.record(STREAM.key, lambda _r, _c: Decision((StreamScaleCancelled(*STREAM),)))
    assert not (await world.verify()).findings


async def test_an_answer_that_is_not_given_twice_is_no_finding(world: World) -> None:
    """A store that has lost the container may have answered."""
    await world.do(world.split(0))
    answers = 0

    def stale(moment: Moment, request: str, name: str) -> None:
        nonlocal answers
        if request == INFO and moment == "before" and name == segment_name(*STREAM, 0):
            answers += 1
            world.segment(0).sealed = answers > 1

    world.store.fault = stale
    found = await world.verify()
    assert answers == 2 and not found.findings


async def test_a_finding_that_goes_before_its_repair_is_left_alone(world: World) -> None:
    await world.do(world.split(0))
    world.segment(0).sealed = False
    answers = 0

    def seal(moment: Moment, request: str, name: str) -> None:
        nonlocal answers
        if request == INFO and moment == "after" and name == segment_name(*STREAM, 0):
            answers += 1
            world.segment(0).sealed = answers >= 2

    world.store.fault = seal
    found = await world.verify(Choice(repairs=True))
    (finding,) = found.findings
    assert finding.repair == "not repaired: it is no longer so" and finding.repaired is True


async def test_a_silent_container_is_reported_and_costs_one_wait(world: World) -> None:
    world.lose(segment_name(*STREAM, 0))
    requests = 0

    def silence(moment: Moment, _request: str, _name: str) -> None:
        nonlocal requests
        if moment == "before":
            requests += 1
            raise ConnectionFailure(Failure.TIMED_OUT, "nothing came")

    for _ in range(10):
        await world.open()
    world.store.fault = silence
    found = await world.verify(Choice(patience_s=0.0, concurrency=1))
    assert not found.findings and len(found.not_answered) == found.summary.segments == 23
    assert found.summary.exit_code == 2 and requests <= 2 * len(CONTAINERS["items"])
    assert "nothing came" in found.not_answered[0].reason


class SideBySide:
    """Calls; `most` of them were under way at once."""

    def __init__(self) -> None:
        self.most = self._running = 0

    async def call(self) -> None:
        self._running += 1
        self.most = max(self.most, self._running)
        await asyncio.sleep(0)
        self._running -= 1


async def test_silent_containers_are_probed_side_by_side(world: World) -> None:
    calls = SideBySide()

    async def time_out() -> None:
        await calls.call()
        raise ConnectionFailure(Failure.TIMED_OUT)

    async def route() -> None:
        return None

    questions = Questions(world.store, 4, route, concurrency=1, patience_s=0.0)
    world.store.fault = lambda moment, _request, _name: time_out() if moment == "before" else None
    subjects = [StreamSegment(STREAM, segment) for segment in range(20)]
    await questions.ask(subjects)
    assert calls.most == 1, "one question at a time finds them out one by one"
    answers = await questions.ask(subjects)
    assert calls.most == 4 and all(answer.failure for answer in answers.values())
    world.store.fault = None
    assert not any(answer.failure for answer in (await questions.ask(subjects)).values())


async def test_a_segment_that_is_never_answered_for_silences_no_other(world: World) -> None:
    for _ in range(10):
        await world.open()
    broken = segment_name(*STREAM, 1)

    def fail(moment: Moment, _request: str, name: str) -> None:
        if moment == "before" and name == broken:
            raise ConnectionFailure(Failure.CLOSED_BY_PEER)

    world.store.fault = fail
    found = await world.verify(Choice(patience_s=0.0, concurrency=1))
    assert [one.segment for one in found.not_answered] == [broken] and found.summary.exit_code == 2


async def test_a_container_that_moves_is_asked_once_more(world: World) -> None:
    failures = 2

    def moving(moment: Moment, _request: str, _name: str) -> None:
        nonlocal failures
        if moment == "before" and failures:
            failures -= 1
            raise ConnectionFailure(Failure.LOST)

    world.store.fault = moving
    found = await world.verify()
    assert not failures and not found.not_answered and found.summary.exit_code == 0


async def test_questions_are_bounded(world: World) -> None:
    calls = SideBySide()
    for _ in range(10):
        await world.open()
    world.store.fault = lambda moment, _r, _n: calls.call() if moment == "before" else None
    found = await world.verify(Choice(concurrency=3))
    assert calls.most == 3 and found.summary.segments == 23


def test_findings_count_more_than_silence() -> None:
    assert Summary(findings=1, not_answered=1).exit_code == 1
    assert Summary(not_answered=1).exit_code == 2
    assert Summary().exit_code == 0
