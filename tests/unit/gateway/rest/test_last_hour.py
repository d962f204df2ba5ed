"""The last hour by minute, from the journal, and the changes before a page was opened."""

import asyncio

import pytest
from support.wait import eventually_async
from unit.gateway.rest.test_sluice_segments import begin
from unit.gateway.rest.test_sluice_streams import ST, S
from unit.gateway.rest.world import World
from unit.gateway.system import BEGAN_MS, PARTITIONS

from api_gateway.console import last_hour
from api_gateway.console.feed import watch
from sluice.domain.cluster.events import ContainersUnresponsive, MemberJoined, MemberLeft
from sluice.domain.transaction import events as ev
from sluice.memory.broker import MemoryBroker

DEADLINE_S = 60.0
MINUTE = 60_000


class LeapingBroker(MemoryBroker):
    """Its clock leaps."""

    ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@pytest.fixture
async def broker() -> LeapingBroker:
    """A minute begins with it: none begins by itself in the middle of a test."""
    loop_ms = round(asyncio.get_running_loop().time() * 1000)
    return LeapingBroker(PARTITIONS, began_ms=BEGAN_MS - BEGAN_MS % MINUTE - loop_ms)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are shared for no time, and changes known at once."""
    monkeypatch.setattr(last_hour, "SHARED_S", 0.0)
    monkeypatch.setattr(watch, "TURN_S", 0.01)


async def test_of_a_new_system_there_is_nothing_from_before_it_was(world: World) -> None:
    now = world.runtime.clock.now_ms()
    assert [one["at"] for one in (await world.get(f"{S}/overview/hour"))["items"]] == [now - now % MINUTE]


async def test_a_minute_older_than_an_hour_is_left_out(world: World, broker: LeapingBroker) -> None:
    broker.ahead_ms = 2 * 60 * MINUTE
    found = (await world.get(f"{S}/overview/hour"))["items"]
    assert len(found) == 61 and {one["changes"] for one in found} == {0}


async def test_minutes_since_the_first_change_have_what_happened_and_what_was_open(
    world: World, stream: str, broker: LeapingBroker
) -> None:
    began = world.runtime.clock.now_ms()
    first, second = [await begin(world) for _ in range(2)]
    broker.ahead_ms += 2 * MINUTE
    now = world.runtime.clock.now_ms()
    await world.call("POST", f"{ST}/transactions/{first}/abort")
    await world.system.append("sc/st", ev.TransactionAborted("sc", "st", first, at=now))
    await world.call("POST", f"{ST}/transactions/{second}/commit")

    async def items() -> list[dict[str, int]]:
        found: list[dict[str, int]] = (await world.get(f"{S}/overview/hour"))["items"]
        return found

    async def known() -> bool:
        found = await items()
        return [one.get("open") for one in found] == [2, 2, 0] and found[-1]["waiting"] == 1

    await eventually_async(known, DEADLINE_S, "what is open and what waits is counted")
    found = await items()
    assert [one["at"] for one in found] == [began - began % MINUTE + number * MINUTE for number in range(3)]
    assert [(one["aborts"], one["commits"], one["waiting"]) for one in found] == [(0, 0, 0), (0, 0, 0), (1, 0, 1)]
    assert found[1]["changes"] == 0 < min(found[0]["changes"], found[2]["changes"])


async def test_containers_that_did_not_answer_are_counted_while_they_did_not(
    world: World, broker: LeapingBroker
) -> None:
    await world.system.append("cluster", MemberJoined("txn-manager", "a", {}, at=0))
    for later, silent in ((0, (1, 2)), (2 * MINUTE, (2,)), (2 * MINUTE, ())):
        broker.ahead_ms += later
        at = world.runtime.clock.now_ms()
        await world.system.append("cluster", ContainersUnresponsive("a", silent, at=at))
    await world.system.append("cluster", ContainersUnresponsive("a", (3,), at=at + 1))
    await world.system.append("cluster", MemberLeft("a", at=at + 2))
    assert [one["silent"] for one in (await world.get(f"{S}/overview/hour"))["items"]] == [2, 2, 2, 1, 2]


async def test_the_last_changes_are_there_before_any_page_was_open(world: World, stream: str) -> None:
    await begin(world)
    found = (await world.get(f"{S}/overview/hour", changes=50))["changes"]
    assert found[0]["aggregate"] == "txn:sc/st"
    assert {"TransactionOpened"} <= {type for one in found for type in one["types"]}
    assert {one["aggregate"] for one in found} >= {"stream:sc/st", "scope:sc"}
    assert [one["at"] for one in found] == sorted((one["at"] for one in found), reverse=True)
    assert (await world.get(f"{S}/overview/hour", changes=1))["changes"] == found[:1]
