"""Statistics of streams over REST: the latest windows and their age."""

from typing import Any, cast

import msgspec
import pytest
from unit.gateway.rest.world import World
from unit.gateway.system import PARTITIONS

from sluice.domain.transaction.commands import AbortReason
from sluice.engine.partition import partition_of
from sluice.insight.statistics import (
    MINUTE_MS,
    Figures,
    Folded,
    Operation,
    StatisticsProgress,
    WindowKind,
    WindowStatistics,
    progress_key,
)
from sluice.kafka.topics import STATISTICS_WINDOWS
from sluice.memory.broker import MemoryMessage

STATISTICS = "/sluice/v1/scopes/sc/streams/st/statistics"
OF = partition_of("sc/st", PARTITIONS)
FIGURES = Figures(
    opened=3,
    committed=1,
    aborted={AbortReason.LEASE: 1},
    timed=2,
    total_ms=900,
    longest_ms=600,
    operations={Operation.SCALE: 2},
)


def message(key: str, fact: Folded | None) -> MemoryMessage:
    value = cast(bytes, msgspec.json.encode(fact) if fact is not None else None)
    return MemoryMessage(STATISTICS_WINDOWS.name, OF, 0, key, value)


def window(begin: int, kind: WindowKind = WindowKind.MINUTE, of: Figures = FIGURES) -> MemoryMessage:
    fact = WindowStatistics("r", "t/1", begin, "sc", "st", kind, begin, 0, of)
    return message(fact.key, fact)


def progress(at: int) -> MemoryMessage:
    return message(progress_key(OF), StatisticsProgress("m", "t/1", at, OF))


def learn(world: World, *messages: MemoryMessage) -> None:
    world.statistics.take_in(cast(Any, list(messages)))


async def test_a_stream_of_which_nothing_was_counted_says_so(world: World, stream: str) -> None:
    assert await world.get(STATISTICS) == {"window": "minute", "items": []}


async def test_a_window_has_its_figures_and_their_age(world: World, stream: str) -> None:
    as_of = world.system.broker.now_ms() - 5_000
    learn(world, window(MINUTE_MS), progress(as_of))
    found = await world.get(STATISTICS)
    assert (found["window"], found["asOf"]) == ("minute", as_of)
    assert 5 <= found["ageS"] < 60
    (item,) = found["items"]
    assert item == {
        "begin": MINUTE_MS,
        "end": 2 * MINUTE_MS,
        "opened": 3,
        "committed": 1,
        "aborted": {"lease": 1},
        "timed": 2,
        "totalMs": 900,
        "longestMs": 600,
        "operations": {"scale": 2},
    }


async def test_the_latest_windows_of_a_kind_come_first(world: World, stream: str) -> None:
    learn(world, *(window(n * MINUTE_MS) for n in (2, 4, 3)), window(0, WindowKind.HOUR), progress(1))
    found = await world.get(STATISTICS, count=2)
    assert [item["begin"] for item in found["items"]] == [4 * MINUTE_MS, 3 * MINUTE_MS]
    found = await world.get(STATISTICS, window="hour")
    assert [(item["begin"], item["end"]) for item in found["items"]] == [(0, 60 * MINUTE_MS)]
    assert (await world.get(STATISTICS, window="day"))["items"] == []


async def test_a_window_that_changes_or_expires_is_replaced_or_gone(world: World, stream: str) -> None:
    learn(world, window(0), window(0, of=Figures(opened=9)), window(MINUTE_MS), progress(1))
    assert [item["opened"] for item in (await world.get(STATISTICS))["items"]] == [3, 9]
    learn(world, message(f"sc/st minute {MINUTE_MS}", None), message("sc/st minute 0", None), message("x", None))
    assert (await world.get(STATISTICS))["items"] == []


async def test_what_is_no_window_is_passed_over(world: World, stream: str) -> None:
    learn(world, MemoryMessage(STATISTICS_WINDOWS.name, OF, 0, "sc/st", b"nonsense"), window(0))
    assert len((await world.get(STATISTICS))["items"]) == 1


@pytest.mark.parametrize("query", [{"window": "year"}, {"count": 0}, {"count": 121}, {"count": "many"}])
async def test_a_wrong_query_is_refused(world: World, stream: str, query: dict[str, Any]) -> None:
    assert (await world.call("GET", STATISTICS, **query)).status_code == 400


async def test_there_are_no_statistics_of_a_stream_that_is_not_there(world: World) -> None:
    learn(world, window(0), progress(1))
    answer = await world.call("GET", STATISTICS)
    assert (answer.status_code, answer.json()["reason"]) == (404, "STREAM_NOT_FOUND")
