"""Feeds of events: what a page is sent, when, and how it goes on after a break."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from unit.gateway.feed.conftest import Gateway
from unit.gateway.system import MemorySystem

from api_gateway.console.feed import feeds, watch
from api_gateway.console.rest.events import Sight
from api_gateway.edge.errors import OverloadedError
from sluice.domain.scope.events import ScopeCreated
from sluice.security.caller import Caller
from sluice.security.resources import Permission

PARTITIONS = 16


def created(scope: str) -> ScopeCreated:
    return ScopeCreated(scope, creation_id="i", at=1)


async def create(system: MemorySystem, *scopes: str) -> None:
    for scope in scopes:
        await system.append(scope, created(scope))


async def test_a_change_is_there_within_a_quarter_of_a_second(idle: MemorySystem, gateway: Gateway) -> None:
    loop, reader = asyncio.get_running_loop(), await gateway.read()
    await create(idle, "a", "b")
    began = loop.time()
    name, body = await reader.next()
    assert loop.time() - began <= watch.TURN_S
    assert name == "changed" and body["position"] == reader.position
    items: Any = body["items"]
    assert [(i["aggregate"], i["types"], i["version"]) for i in items] == [
        ("scope:a", ["ScopeCreated"], 1),
        ("scope:b", ["ScopeCreated"], 1),
    ]
    assert all(isinstance(item["at"], int) for item in items)


async def test_a_feed_has_what_it_names_and_nothing_else(idle: MemorySystem, gateway: Gateway) -> None:
    named, every = await gateway.read("scope:b", "cluster"), await gateway.read()
    await create(idle, "a", "b")
    assert set(await every.changed()) == {"scope:a", "scope:b"}
    assert set(await named.changed()) == {"scope:b"}


async def test_a_caller_sees_what_it_may_read(idle: MemorySystem, gateway: Gateway) -> None:
    reader = await gateway.read(may_see=lambda subject: subject == "scope:b")
    await create(idle, "a", "b")
    assert set(await reader.changed()) == {"scope:b"}


async def test_feeds_share_what_they_send_with_those_of_the_same_rights_only(
    idle: MemorySystem, gateway: Gateway
) -> None:
    sharing = Gateway(gateway.watch, feeds.Feeds(gateway.watch, idle.runtime.clock, feeds.Hello("c", ""), 5))
    seen: list[str] = []

    def sight_of(visible: str) -> Callable[[], Sight]:
        class Rights:
            def on(self, resource: str) -> Permission:
                seen.append(resource)
                return Permission.READ if resource == f"prn::/scope:{visible}" else Permission.NONE

        rights = Rights()
        return lambda: Sight(Caller("u", rights.on))

    of_a, of_b = sight_of("a"), sight_of("b")
    readers = [await sharing.read(may_see=sight()) for sight in (of_a, of_b, of_a, of_b)]
    everything = await sharing.read()
    await create(idle, "a", "b")
    assert [set(await reader.changed()) for reader in readers] == [{"scope:a"}, {"scope:b"}] * 2
    assert set(await everything.changed()) == {"scope:a", "scope:b"}
    assert len(seen) == 4, "each right was looked at once for each subject"
    await sharing.stop()


async def test_an_idle_feed_beats(gateway: Gateway) -> None:
    loop, reader = asyncio.get_running_loop(), await gateway.read()
    began = loop.time()
    for _ in range(3):
        name, body = await reader.next()
        assert name == "beat" and body.keys() == {"now", "position"}
    assert loop.time() - began == pytest.approx(3 * watch.BEAT_S, abs=1)


async def test_a_feed_goes_on_at_another_gateway(idle: MemorySystem, gateway: Gateway, other: Gateway) -> None:
    await other.read()
    reader = await gateway.read()
    await create(idle, "a")
    assert set(await reader.changed()) == {"scope:a"}
    await reader.close()
    await create(idle, "b", "c")
    resumed = await other.read(since=reader.position)
    assert set(await resumed.changed()) == {"scope:b", "scope:c"}


async def test_a_page_that_comes_back_soon_has_missed_nothing(idle: MemorySystem, gateway: Gateway) -> None:
    reader = await gateway.read()
    await reader.close()
    await create(idle, "a")
    await asyncio.sleep(watch.LINGER_S / 2)
    assert set(await (await gateway.read(since=reader.position)).changed()) == {"scope:a"}


async def test_a_feed_that_breaks_behind_its_first_event_has_missed_nothing(
    idle: MemorySystem, gateway: Gateway
) -> None:
    reader = await gateway.read()
    await reader.close()
    await create(idle, "a")
    broken = await gateway.read(since=reader.position)
    await broken.close()
    assert set(await (await gateway.read(since=broken.position)).changed()) == {"scope:a"}


async def test_the_journal_is_observed_only_for_pages(idle: MemorySystem, gateway: Gateway) -> None:
    listeners = idle.runtime.journal.on_entry
    assert not listeners
    reader = await gateway.read()
    assert len(listeners) == 1
    await reader.close()
    await asyncio.sleep(watch.LINGER_S + 1)
    assert not listeners and not gateway.watch.is_listening
    await create(idle, "a")
    again = await gateway.read(since=reader.position)
    assert (await again.next())[0] == "many", "what happened meanwhile is not known"


async def test_where_too_much_changes_at_once_everything_is_fetched_anew(
    idle: MemorySystem, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = await gateway.read()
    monkeypatch.setattr(feeds, "MAX_ITEMS", 1)
    await create(idle, "a", "b")
    assert (await reader.next())[0] == "many"
    monkeypatch.setattr(watch, "MAX_RECORDED", 1)
    await create(idle, "c", "d")
    assert (await reader.next())[0] == "many"
    await create(idle, "e")
    assert set(await reader.changed()) == {"scope:e"}


@pytest.mark.parametrize("partitions", [PARTITIONS, PARTITIONS // 2])
async def test_a_position_of_another_journal_is_behind_nothing(gateway: Gateway, partitions: int) -> None:
    reader = await gateway.read(since=".".join(["1000"] * partitions))
    assert (await reader.next())[0] == "many"


async def test_a_feed_too_many_is_refused(gateway: Gateway) -> None:
    first = await gateway.read()
    await gateway.read()
    with pytest.raises(OverloadedError, match="2, no more may be"):
        gateway.feeds.open(("*",))
    await first.close()
    await gateway.read()


async def test_who_has_most_feeds_makes_room_for_who_has_none(gateway: Gateway) -> None:
    first = await gateway.read(principal="a")
    second = await gateway.read(principal="a")
    with pytest.raises(OverloadedError):
        gateway.feeds.open(("*",), principal="a")
    third = await gateway.read(principal="b")
    assert await first.next() == ("bye", {"reason": "displaced"})
    with pytest.raises(OverloadedError):
        gateway.feeds.open(("*",), principal="b")
    with pytest.raises(OverloadedError):
        gateway.feeds.open(("*",), principal="c")
    assert [(await reader.next())[0] for reader in (second, third)] == ["beat", "beat"]


async def test_a_feed_ends_after_a_while_so_that_its_page_proves_anew_who_reads(gateway: Gateway) -> None:
    reader = await gateway.read()
    name = "beat"
    while name == "beat":
        name, body = await reader.next()
    assert (name, body) == ("bye", {"reason": "expired"})


async def test_feeds_end_before_the_gateway_does(gateway: Gateway) -> None:
    reader = await gateway.read()
    waiting = asyncio.ensure_future(reader.next())
    await asyncio.sleep(0)
    stopping = asyncio.ensure_future(gateway.feeds.stop())
    assert await waiting == ("bye", {"reason": "stopping"})
    await reader.close()
    await stopping
    with pytest.raises(OverloadedError, match="stopping"):
        gateway.feeds.open(("*",))
