"""What a policy has decided, requested late: who decides froze before it sent, or its batch ran again with its time."""

from collections.abc import Callable

import pytest
from support.stream_log import STREAM, StreamLog

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.policy.retention import RetentionState
from sluice.domain.stream import retention, traffic
from sluice.domain.stream.commands import ScaleStream, TruncateStream, UpdateSubscriberCut
from sluice.domain.stream.decisions import HOLDS_MS
from sluice.domain.stream.events import StreamUpdated, SubscriberAdded, SubscriberRemoved
from sluice.domain.stream.traffic import Direction, Traffic
from sluice.policies.rules import RetentionRule, ScaleRule

NOW = 1_700_000_000_000
READERS = "sc/readers"
KEEP_100 = RetentionPolicy(RetentionType.SIZE, 100, 1 << 62)
AT_MOST_200 = RetentionPolicy(RetentionType.SIZE, 100, 200)


class Scene(StreamLog):
    """A stream of 500 bytes with a policy of retention, and a reader group that may subscribe to it."""

    def __init__(self, policy: RetentionPolicy = KEEP_100) -> None:
        super().__init__(retention=policy)
        self._rule = RetentionRule()
        self._known: RetentionState | None = None

    def subscribe(self, generation: int) -> None:
        self.fold(SubscriberAdded(*STREAM, READERS, "id", generation, at=NOW))

    def leave(self) -> None:
        self.fold(SubscriberRemoved(*STREAM, READERS))

    def read(self, offset: int) -> None:
        generation = self.stream.subscribers[READERS].generation
        assert self.ask(UpdateSubscriberCut(*STREAM, READERS, "id", generation, {0: offset})).status == "SUCCESS"

    def decided(self) -> TruncateStream:
        """What is requested on reports of what is so now, the first one of 300 bytes."""
        for length in (300, 500):
            report = retention.report(self.stream, {0: length}, f"{length}", "by", NOW, self.version(STREAM.aggregate))
            assert report is not None
            self._known = self._rule.observe(self._known, report, NOW)
        assert self._known is not None
        verdict, self._known = self._rule.decide(self._known, NOW)
        assert verdict.request is not None, verdict.reason
        assert isinstance(verdict.request[1], TruncateStream)
        return verdict.request[1]

    def is_refused(self, command: TruncateStream, appended_at: int = NOW) -> bool:
        return self.decide(command, appended_at=appended_at).reply is not None


def reported_by_another(scene: Scene) -> None:
    scene.subscribe(0)
    scene.read(10)


def first_report(scene: Scene) -> None:
    scene.read(10)


def subscribed_anew(scene: Scene) -> None:
    scene.leave()
    scene.subscribe(1)
    scene.read(10)


@pytest.mark.parametrize("policy", [KEEP_100, AT_MOST_200])
@pytest.mark.parametrize(
    ("before", "since"),
    [
        ((), lambda scene: scene.subscribe(0)),
        ((), reported_by_another),
        ((lambda scene: scene.subscribe(0),), first_report),
        ((lambda scene: scene.subscribe(0), lambda scene: scene.read(450)), subscribed_anew),
    ],
)
def test_a_truncation_is_refused_once_a_reader_came_that_it_does_not_know(
    before: tuple[Callable[[Scene], None], ...], since: Callable[[Scene], None], policy: RetentionPolicy
) -> None:
    """Also one by a maximum, which may pass readers. It is decided anew at once, with all of them known."""
    scene = Scene(policy)
    for step in before:
        step(scene)
    command = scene.decided()
    since(scene)
    assert scene.is_refused(command) and scene.stream.workflow is None
    if READERS in scene.stream.subscribers:
        assert not scene.is_refused(scene.decided())


def test_a_truncation_goes_on_when_its_readers_have_read_on_or_left() -> None:
    for since in (lambda scene: scene.read(460), Scene.leave):
        scene = Scene()
        scene.subscribe(0)
        scene.read(450)
        command = scene.decided()
        since(scene)
        assert not scene.is_refused(command)


def test_what_was_decided_is_refused_three_minutes_later_by_the_brokers_time() -> None:
    scene = Scene()
    command = scene.decided()
    assert scene.is_refused(command, NOW + HOLDS_MS + 1)
    assert not scene.is_refused(command, NOW + HOLDS_MS)
    log = scalable()
    scale = scaled(log)
    assert log.ask(scale, appended_at=NOW + HOLDS_MS + 1).status == "PRECONDITION_FAILED"
    assert log.ask(scale, appended_at=NOW + HOLDS_MS).status == "STARTED"


def test_a_scale_is_refused_in_another_epoch_than_it_was_decided_in() -> None:
    log = scalable()
    command = scaled(log)
    log.scale((1,), ((0.5, 1.0),))
    assert set(command.seals) <= set(log.stream.active_epoch.segments)
    assert log.ask(command).status == "PRECONDITION_FAILED" and log.stream.workflow is None
    assert log.ask(scaled(log)).status == "STARTED"


def scalable() -> StreamLog:
    log = StreamLog(2)
    by_load = ScalingPolicy(ScaleType.EVENTS, target_rate=10, scale_factor=2, min_segments=2)
    log.fold(StreamUpdated(*STREAM, config=StreamConfig(by_load)))
    return log


def scaled(log: StreamLog) -> ScaleStream:
    """What is requested on a report that the first segment is hot."""
    found = traffic.reporter(log.stream, "by")(Traffic(STREAM, 0, Direction.UP, NOW, 2, False), "id")
    assert found is not None
    rule = ScaleRule(cooldown_ms=0)
    state = rule.observe(None, found, NOW)
    assert state is not None
    verdict, _ = rule.decide(state, NOW)
    assert verdict.request is not None and isinstance(verdict.request[1], ScaleStream)
    return verdict.request[1]
