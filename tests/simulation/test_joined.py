"""Creations that join others: each is answered as it is, and no name stays held by what never comes, whoever dies."""

import asyncio

import pytest
from simulation import invariants
from simulation.world import Process, World
from support.virtual_time import run

from sluice.domain.commands import (
    Command,
    CreateReaderGroup,
    CreateScope,
    CreateStream,
    DeleteScope,
    DeleteStream,
    ResumeCreation,
    SealStream,
    TruncateStream,
)
from sluice.domain.config import GroupRetention, ReaderGroupConfig, ScalingPolicy, StreamConfig
from sluice.domain.decision import Reply
from sluice.domain.names import stream_key
from sluice.domain.scope import Scope
from sluice.domain.stream.state import find_stream
from sluice.messaging.producer import ProduceError
from sluice.messaging.requests import Request
from sluice.messaging.topics import Topic

CREATE = CreateStream("sc", "st", StreamConfig())
GROUP = CreateReaderGroup("sc", "rg", ReaderGroupConfig(id="id", starts={"sc/other": {}}))
OTHER = CreateStream("sc", "other", StreamConfig())


class Forgetful(World):
    """A world whose processes die without having committed any offset since the last `commit`."""

    def commit(self) -> None:
        for partition, offsets in self.process.consumer._offsets.items():
            if offsets.position is not None:
                self.committed[partition] = offsets.position

    def touch(self, what: str) -> None:
        kept = list(self.committed)
        try:
            super().touch(what)
        finally:
            self.committed = kept

    def die(self) -> None:
        kept = list(self.committed)
        self.process.end()
        self.committed = kept
        self._restart()

    async def do(self, *commands: Command) -> list[str]:
        """The statuses of the answers, whatever else is under way."""
        return [(await self.reply(self.post(command))).status for command in commands]

    async def reply(self, request: str) -> Reply:
        await self.until(lambda: self.answer(request))
        answer = self.answer(request)
        assert answer is not None
        return answer

    def is_held(self) -> bool:
        scope = self.view("sc").get("scope:sc")
        assert isinstance(scope, Scope)
        return "st" in scope.streams

    def is_there(self) -> bool:
        return find_stream(self.view(stream_key("sc", "st")), "sc", "st") is not None


async def joins_after_a_deletion(behind: Command, crash: int) -> bool:
    """Whether a process died in the time in which the joined creation goes on, after so many touches."""
    world = Forgetful()
    assert await world.do(CreateScope("sc"), CREATE, SealStream("sc", "st")) == ["SUCCESS"] * 3
    world.commit()
    world.failing = {"DeleteSegment"}
    world.post(DeleteStream("sc", "st"))
    await asyncio.sleep(0.5)
    world.commit()
    joined = world.post(CREATE)
    await asyncio.sleep(0.1)
    world.commit()
    refused = world.post(behind)
    await asyncio.sleep(0.1)
    world.touched, world.crashes, world.failing = 0, [crash], set()
    reply = await world.reply(joined)
    await world.reply(refused)
    died, world.crashes = not world.crashes, []
    await world.until(lambda: world.process.alive and world.process.is_idle() and world._all_delivered())
    assert world.is_held() == world.is_there() == (reply.status == "SUCCESS"), (crash, reply)
    assert reply.status == "SUCCESS" or "come again" in reply.reason
    invariants.check(world)
    return died


@pytest.mark.parametrize("behind", [TruncateStream("sc", "st", {0: 0}), SealStream("sc", "st")])
def test_no_name_stays_held_wherever_the_process_dies(behind: Command) -> None:
    async def test() -> None:
        crash = 0
        while await joins_after_a_deletion(behind, crash):
            crash += 1
        assert crash > 20

    run(test())


@pytest.mark.parametrize(("create", "status"), [(CREATE, "STREAM_EXISTS"), (GROUP, "SUCCESS")])
def test_a_creation_that_waits_for_another_and_comes_again_is_answered_as_that_one_ends(
    create: Command, status: str
) -> None:
    async def test() -> None:
        world = Forgetful()
        assert await world.do(CreateScope("sc")) == ["SUCCESS"]
        world.commit()
        world.failing = {"CreateSegment"}
        requests = [world.post(create), world.post(create), world.post(OTHER)]
        await asyncio.sleep(0.2)
        world.die()
        await asyncio.sleep(5)
        assert [world.answer(request) for request in requests] == [None] * 3
        world.failing = set()
        assert [(await world.reply(request)).status for request in requests] == ["SUCCESS", status, "SUCCESS"]

    run(test())


def test_a_creation_that_goes_back_twice_leaves_no_name_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kafka does not say in time that it has it, so it is sent again; its thing comes and goes in between."""
    send = Process.send
    doubled: list[str] = []

    def fails_once(process: Process, topic: Topic, request: Request) -> asyncio.Future[None]:
        sent = send(process, topic, request)
        if isinstance(request.command, ResumeCreation) and not doubled:
            doubled.append(request.id)
            sent = asyncio.get_running_loop().create_future()
            sent.set_exception(ProduceError("timed out"))
        return sent

    async def test() -> None:
        world = Forgetful()
        assert await world.do(CreateScope("sc")) == ["SUCCESS"]
        group = CreateReaderGroup("sc", "rg", ReaderGroupConfig("id", {"sc/none": {}}, retention=GroupRetention.MANUAL))
        requests = [world.post(group), world.post(group)]
        assert [(await world.reply(request)).reason for request in requests] == ["no such stream: sc/none"] * 2
        await world.until(lambda: world.process.is_idle() and world._all_delivered())
        assert doubled == requests[1:]
        assert await world.do(DeleteScope("sc")) == ["SUCCESS"]

    monkeypatch.setattr(Process, "send", fails_once)
    run(test())


def test_a_name_whose_creation_is_a_dead_letter_is_refused_with_the_reason_and_the_creation_tried_again() -> None:
    async def test() -> None:
        world = Forgetful()
        assert await world.do(CreateScope("sc")) == ["SUCCESS"]
        usual, world.most_bytes = world.most_bytes, 1000
        first = world.post(CreateStream("sc", "st", StreamConfig(scaling=ScalingPolicy(min_segments=30))))
        assert "dead letter" in (await world.reply(first)).reason and world.is_held()
        refused = await world.reply(world.post(CREATE))
        assert refused.status == "FAILURE" and f"held by request {first}" in refused.reason
        world.most_bytes = usual
        assert await world.do(CREATE) == ["STREAM_EXISTS"], "what holds the name was passed on once more"
        assert world.is_there()

    run(test())
