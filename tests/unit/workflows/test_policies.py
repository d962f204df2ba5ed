"""Policies decided without Spark: by whom, and from what is remembered."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec
import pytest
from support.decisions import halves, hot
from support.virtual_time import run
from support.wait import eventually_async

from sluice.domain.stream.commands import ScaleStream
from sluice.domain.stream.traffic import Direction
from sluice.engine.partition import partition_of
from sluice.engine.ports import Room
from sluice.kafka.requests import Request, decode_request
from sluice.kafka.topics import DEAD_LETTERS, REQUESTS_STREAMS, SCALE, SCALE_MEMORY
from sluice.memory.broker import MemoryBroker, MemoryMessage
from sluice.memory.connections import MemoryConnections, MemoryFollowing, MemoryGroups
from sluice.runtime import Runtime
from stream_workflows import policies
from stream_workflows.policies import decide_policies
from stream_workflows.settings import WorkflowSettings

PARTITIONS = 4
BEGAN_MS = 1_700_000_000_000
COOLDOWN_S = 120.0
LATER_S = 3600.0
"""So long that whatever is to be saved is."""
SOON_S = 30.0


class Deciders:
    """Members that may decide, over one broker."""

    def __init__(self) -> None:
        self.broker = MemoryBroker(PARTITIONS, began_ms=BEGAN_MS)
        self.groups = MemoryGroups(self.broker)

    def start(self, name: str, kind: type[MemoryConnections] = MemoryConnections) -> Runtime:
        settings = WorkflowSettings(instance=name, partitions=PARTITIONS, scale_cooldown_s=COOLDOWN_S)
        runtime = Runtime("stream-workflows", settings, kind(self.groups))
        decide_policies(runtime, settings)
        return runtime

    def report(self, stream: str, value: bytes) -> None:
        self.broker.land(SCALE.name, f"s/{stream}", value)

    def hot(self, stream: str, **changes: object) -> None:
        self.report(stream, msgspec.json.encode(hot(stream, self.broker.now_ms(), **changes)))

    def scales(self) -> list[Request]:
        """The requests to scale, in the order of their time."""
        found = [decode_request(m.value() or b"") for log in self.broker.logs(REQUESTS_STREAMS.name) for m in log]
        return sorted((one for one in found if isinstance(one.command, ScaleStream)), key=lambda one: one.at)

    async def until_scales(self, count: int) -> list[Request]:
        await eventually_async(lambda: len(self.scales()) >= count, SOON_S, f"{count} requests")
        return self.scales()

    def remembered(self, stream: str) -> list[bytes]:
        log = self.broker.log(SCALE_MEMORY.name, partition_of(f"s/{stream}", PARTITIONS))
        return [message.value() or b"" for message in log]


def scene(play: Callable[[Deciders], Awaitable[None]]) -> None:
    async def begin() -> None:
        await play(Deciders())

    run(begin())


def test_a_second_member_decides_once_the_first_has_left_and_knows_what_it_knew() -> None:
    async def play(deciders: Deciders) -> None:
        first, _ = deciders.start("a"), deciders.start("b")
        deciders.hot("st")
        (request,) = await deciders.until_scales(1)
        assert request.by == "retention-spark/a-without-spark"
        await first.stack.aclose()
        # Within the cool-down of what the first one requested, and another stream to see that the second one decides.
        deciders.hot("st", epoch=0)
        deciders.hot("other")
        _, other = await deciders.until_scales(2)
        assert (other.by, other.command.key) == ("retention-spark/b-without-spark", "s/other")

    scene(play)


def test_what_was_not_saved_when_the_driver_ended_is_known_to_the_next_one_from_the_reports() -> None:
    async def play(deciders: Deciders) -> None:
        first = deciders.start("a")
        now = deciders.broker.now_ms()
        for segment in (0, 1):
            cold = halves("st", now, segment, Direction.DOWN, epoch_since=now)
            deciders.report("st", msgspec.json.encode(cold))
        await asyncio.sleep(SOON_S)
        assert deciders.scales() == [] and deciders.remembered("st") == []
        await first.stack.aclose()
        deciders.start("b")
        await asyncio.sleep(COOLDOWN_S + SOON_S)
        (request,) = deciders.scales()
        assert request.by == "retention-spark/b-without-spark"

    scene(play)


def test_one_that_was_deposed_while_it_decided_sends_nothing() -> None:
    async def play(deciders: Deciders) -> None:
        deciders.start("a")
        deciders.start("b")
        await asyncio.sleep(SOON_S)
        leaders = deciders.groups.policy_leaders
        deciders.hot("st")
        leaders.depose()
        (request,) = await deciders.until_scales(1)
        await asyncio.sleep(LATER_S)
        assert [one.id for one in deciders.scales()] == [request.id]
        assert request.by == "retention-spark/b-without-spark"

    scene(play)


def test_a_member_that_is_deposed_has_no_problem_any_more() -> None:
    async def play(deciders: Deciders) -> None:
        first = deciders.start("a")
        deciders.start("b")
        await asyncio.sleep(SOON_S)
        deciders.broker.faulty_topic, deciders.broker.lost_acks = REQUESTS_STREAMS.name, 1
        deciders.hot("st")
        await eventually_async(lambda: first.degraded["policies"]() is not None, SOON_S, "it is said")
        deciders.groups.policy_leaders.depose()
        await eventually_async(lambda: first.degraded["policies"]() is None, SOON_S, "it is not said any more")

    scene(play)


def test_no_more_is_fetched_while_too_many_wait_for_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "MAX_HELD", 2)
    monkeypatch.setattr(policies, "MAX_RECORDS", 1)
    rooms: list[Room] = []

    class Watched(MemoryConnections):
        """Sees whether there is room behind each batch."""

        def follow(
            self, name: str, topic: str, begins: Mapping[int, int], observe: Callable[[Sequence[MemoryMessage]], Room]
        ) -> MemoryFollowing:
            def seen(batch: Sequence[MemoryMessage]) -> Room:
                rooms.append(observe(batch))
                return rooms[-1]

            return super().follow(name, topic, begins, seen)

    async def play(deciders: Deciders) -> None:
        deciders.start("a", Watched)
        await asyncio.sleep(SOON_S)
        for number in range(6):
            deciders.hot(f"st{number}")
        await eventually_async(lambda: any(room is not None for room in rooms), SOON_S, "there is no room")
        deciders.hot("later")
        requests = await deciders.until_scales(7)
        assert {one.command.key for one in requests} == {"s/later", *(f"s/st{number}" for number in range(6))}

    scene(play)


def test_what_is_sent_and_not_taken_is_decided_again_under_the_same_id() -> None:
    async def play(deciders: Deciders) -> None:
        runtime = deciders.start("a")
        await asyncio.sleep(SOON_S)
        deciders.broker.faulty_topic, deciders.broker.lost_acks = REQUESTS_STREAMS.name, 1
        deciders.hot("st")
        await eventually_async(lambda: runtime.degraded["policies"]() is not None, SOON_S, "it is said")
        await eventually_async(lambda: runtime.degraded["policies"]() is None, SOON_S, "it goes on")
        await asyncio.sleep(LATER_S)
        twice = deciders.scales()
        assert len(twice) == 2 and len({one.id for one in twice}) == 1
        saved, forgotten = deciders.remembered("st")
        assert saved and not forgotten

    scene(play)


def test_what_cannot_be_read_is_a_dead_letter_and_its_key_goes_on() -> None:
    async def play(deciders: Deciders) -> None:
        deciders.start("a")
        deciders.report("st", b"no report")
        deciders.hot("st")
        await deciders.until_scales(1)
        letters = [message for log in deciders.broker.logs(DEAD_LETTERS.name) for message in log]
        assert [letter.value() for letter in letters] == [b"no report"]

    scene(play)
