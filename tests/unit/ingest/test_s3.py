"""Objects of a bucket: windows in the order of keys, each object once, whatever breaks off."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from unit.ingest.world import SOON_S, World

from distributed_ingest.bucket import BucketError, ObjectMissingError, Stored
from distributed_ingest.s3 import S3, Reached, bucket_of
from harness import eventually_async
from sluice_cli.errors import UnreachableError, UsageError
from sluice_coordination import Window, statuses

URL = "s3://bucket/logs"
PAGE = 7


class MemoryBucket:
    """Twin of a bucket. `ages`: of what is not old; `away`: it gives no answer; `gone`: listed, and deleted since."""

    def __init__(self, **objects: str) -> None:
        self.objects = {key: text.encode() for key, text in objects.items()}
        self.ages: dict[str, float] = {}
        self.gone: set[str] = set()
        self.away = False
        self.lists = 0

    async def after(self, key: str) -> list[Stored]:
        self.lists += 1
        if self.away:
            raise BucketError("no answer")
        found = sorted(each for each in self.objects if each > key)[:PAGE]
        return [Stored(each, len(self.objects[each]), self.ages.get(each, 1000.0)) for each in found]

    async def read(self, key: str) -> AsyncIterator[bytes]:
        if self.away:
            raise BucketError("no answer")
        if key in self.gone:
            raise ObjectMissingError(key)
        for at in range(0, len(self.objects[key]), 3):
            yield self.objects[key][at : at + 3]

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def world() -> World:
    return World(kind="s3", key="source")


def feed(world: World, bucket: MemoryBucket, *, once: bool = True, objects: int = 3, settle_s: float = 10.0) -> S3:
    return S3(
        world.scene(once=once), URL, "",
        objects=objects, window_bytes=1000, ahead=4, scan_s=0.01, settle_s=settle_s, bucket=bucket,
    )  # fmt: skip


def numbered(count: int) -> MemoryBucket:
    return MemoryBucket(**{f"{number:03}": f"{number}a\n{number}b" for number in range(count)})


async def test_every_object_is_written_once_by_windows_of_keys(world: World) -> None:
    bucket = numbered(50)
    await world.run_to_completion(feed(world, bucket))
    assert Counter(world.sink.texts) == Counter(f"{number}{part}" for number in range(50) for part in "ab")
    assert {event.key for event in world.sink.events} == set(bucket.objects)
    assert all(len({event.key for event in each.events}) <= 3 for each in world.sink.transactions)
    bucket.objects["050"] = b"new"
    await world.run_to_completion(feed(world, bucket))
    assert len(world.sink.texts) == 101 and world.sink.texts[-1] == "new"


async def test_a_window_whose_node_dies_is_written_once_by_the_next_one(world: World) -> None:
    """The first node is gone with its transaction open: its events are not in the stream."""
    bucket = numbered(3)
    world.sink.open.clear()
    copying = feed(world, bucket)
    async with world.node(copying):
        await world.until(lambda: bool(world.sink.transactions), "it has begun")

        async def reported() -> bool:
            parts = await world.store.under("ingest/job/board/part/s3/")
            return [each.report for each in statuses(parts, 0).values()] == [{"left": 3, "unit": "objects"}]

        await eventually_async(reported, SOON_S, "it has reported what is left")
    world.sink.open.set()
    await world.run_to_completion(feed(world, bucket))
    assert len(world.sink.texts) == 6 and [each.state for each in world.sink.transactions] == ["ABORTED", "COMMITTED"]


async def test_a_commit_whose_answer_is_lost_is_not_repeated(world: World) -> None:
    bucket = numbered(3)
    world.sink.open.clear()
    async with world.node(copying := feed(world, bucket)):
        await world.until(lambda: bool(world.sink.transactions), "it has begun")
        world.sink.transactions[0].loses_answer = True
        world.sink.open.set()
        await world.until_finished(copying)
    assert len(world.sink.texts) == 6 and len(world.sink.transactions) == 1
    assert list(world.tally.problems) == ["writing failed: no answer"]


async def test_an_object_waits_until_it_and_those_before_it_are_old_enough(world: World) -> None:
    bucket = MemoryBucket(a="a", b="b", c="c")
    bucket.ages["b"] = 1.0
    async with world.node(feed(world, bucket, once=False)):
        await world.until(lambda: world.sink.texts == ["a"], "the first one is taken")
        lists = bucket.lists
        await world.until(lambda: bucket.lists > lists + 2, "it looks again")
        assert world.sink.texts == ["a"]
        bucket.ages["b"] = 11.0
        await world.until(lambda: world.sink.texts == ["a", "b", "c"], "the others are taken")


async def test_windows_are_bounded_in_bytes_and_one_listing_serves_many() -> None:
    bucket, world = MemoryBucket(a="x" * 999, b="x", c="x", d="x" * 2000, e="x"), World(kind="s3")
    cutting = feed(world, bucket, objects=10)
    await cutting.open()
    position, cuts = None, list[object]()
    while (window := await cutting.next_window(position)) is not None:
        assert isinstance(window, Window)
        cuts.append(window.task.arguments["last"])
        position = window.position
    assert cuts == ["b", "d", "e"] and position == {"key": "e", "objects": 5} and Reached("e", 5).objects == 5
    assert bucket.lists <= 4


@pytest.mark.parametrize(
    ("records", "text", "written", "why"),
    [
        ("items", '[1, {"a": 2}]', ["1", '{"a": 2}'], ""),
        ("whole", "one\ntwo\n", ["one\ntwo\n"], ""),
        ("items", "no array", [], "not a JSON array"),
    ],
)
async def test_how_an_object_is_cut(records: str, text: str, written: list[str], why: str) -> None:
    world = World(kind="s3", records=records)
    await world.run_to_completion(feed(world, MemoryBucket(a=text, b="[]" if records == "items" else "")))
    assert world.sink.texts == written
    assert (world.tally.total.skipped == 1 and why in world.tally.problems[0]) if why else not world.tally.problems


async def test_an_object_that_has_gone_is_passed_by(world: World) -> None:
    bucket = MemoryBucket(a="a", b="b")
    bucket.gone = {"a"}
    await world.run_to_completion(feed(world, bucket))
    assert world.sink.texts == ["b"] and world.tally.total.skipped == 1
    assert list(world.tally.problems) == ["a: the object has gone before its turn came"]


async def test_a_bucket_that_is_away_is_reported_and_read_when_it_is_back(world: World) -> None:
    bucket = numbered(3)
    copying = feed(world, bucket)
    async with world.node(copying):
        bucket.away = True
        await world.until(lambda: bool(world.tally.problems), "it is reported")
        bucket.away = False
        await world.until_finished(copying)
    assert len(world.sink.texts) == 6 and set(world.tally.problems) == {f"{URL}: no answer"}
    bucket.away = True
    with pytest.raises(UnreachableError, match=f"cannot read {URL}: no answer"):
        await feed(world, bucket).open()


def test_which_bucket_a_url_names() -> None:
    assert bucket_of("s3://b") == ("b", "") and bucket_of("s3://b/a/c") == ("b", "a/c")
    for url in ("b/a", "s3://", "http://b/a"):
        with pytest.raises(UsageError, match="names no bucket"):
            bucket_of(url)


async def test_nodes_share_the_windows(world: World) -> None:
    bucket = numbered(60)
    one, two = feed(world, bucket), feed(world, bucket)
    async with world.node(one), world.node(two):
        await asyncio.gather(world.until_finished(one), world.until_finished(two))
    assert Counter(world.sink.texts) == Counter(f"{number}{part}" for number in range(60) for part in "ab")
