"""The partitions of a topic in memory: each record once, deletions and marks passed by, nothing missing in silence."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, KafkaError, KafkaException
from unit.ingest.world import SOON_S, World

from distributed_ingest.kafka import Kafka
from distributed_ingest.ledger import positions
from harness import eventually_async
from sluice.kafka_config.clients import NOTHING
from sluice_cli.errors import RefusedError
from sluice_coordination import LeaseSettings, NodeEntry, NodeSettings, statuses

TOPIC = "orders"
NOTES = "ingest/job/progress/"


def message(partition: int | None, offset: int, key: bytes | None, value: bytes | None, error: int | None) -> Any:
    """What a consumer gets: a record, or an error."""
    return SimpleNamespace(
        partition=lambda: partition,
        offset=lambda: offset,
        key=lambda: key,
        value=lambda: value,
        error=lambda: None if error is None else SimpleNamespace(code=lambda: error),
    )


class MemoryTopic:
    """Records by partition; None is a mark that is not for readers. What is before `first` has been deleted.

    `troubles`: errors that every consumer gets once, of no partition; `refusals`: how often it refuses an offset
    that it has.
    """

    def __init__(self, partitions: int) -> None:
        self.logs: list[list[tuple[bytes | None, bytes | None] | None]] = [[] for _ in range(partitions)]
        self.id = "one"
        self.first = 0
        self.troubles: list[int] = []
        self.refusals = 0

    def fill(self, count: int) -> set[str]:
        for partition, log in enumerate(self.logs):
            log += [(b"k%d" % partition, b"%d-%d" % (partition, len(log) + number)) for number in range(count)]
        return {record[1].decode() for log in self.logs for record in log if record and record[1]}


class MemoryConsumer:
    """Twin of confluent_kafka's, as far as it is used.

    As the real one does it stops with a partition whose offset was refused, and says so once; then there is no `seek`,
    but the partition can be taken away and given anew. It belongs to the thread that first calls it.
    """

    def __init__(self, topic: MemoryTopic) -> None:
        self._topic = topic
        self._at: dict[int, int] = {}
        self._end_reported: set[int] = set()
        self._stopped: set[int] = set()
        self._troubles = [message(None, -1001, None, None, error) for error in topic.troubles]
        self._thread = threading.current_thread()
        self.closed = threading.Event()

    def assign(self, partitions: list[Any]) -> None:
        self._thread = threading.current_thread()
        self._at.clear()
        self.incremental_assign(partitions)

    def incremental_assign(self, partitions: list[Any]) -> None:
        assert threading.current_thread() is self._thread
        for to in partitions:
            assert to.partition not in self._at, "it has it already"
            end = len(self._topic.logs[to.partition])
            logical = {OFFSET_BEGINNING: self._topic.first, OFFSET_END: end}
            self._at[to.partition] = logical.get(to.offset, to.offset)

    def incremental_unassign(self, partitions: list[Any]) -> None:
        assert threading.current_thread() is self._thread
        for each in partitions:
            del self._at[each.partition]
            self._end_reported.discard(each.partition)
            self._stopped.discard(each.partition)

    def seek(self, to: Any) -> None:
        if to.partition in self._stopped:
            raise KafkaException(KafkaError(KafkaError._STATE))
        self._at[to.partition] = to.offset
        self._end_reported.discard(to.partition)

    def consume(self, count: int, timeout: float) -> list[Any]:
        assert threading.current_thread() is self._thread
        found, self._troubles = self._troubles, []
        for partition, at in self._at.items():
            log = self._topic.logs[partition]
            if partition in self._stopped:
                continue
            if at < self._topic.first or at > len(log) or self._topic.refusals:
                self._topic.refusals = max(0, self._topic.refusals - 1)
                self._stopped.add(partition)
                found.append(message(partition, at, None, None, KafkaError._AUTO_OFFSET_RESET))
            elif at < len(log):
                rest = [(offset, record) for offset, record in enumerate(log[at:], at) if record is not None][:count]
                found += [message(partition, offset, *record, None) for offset, record in rest]
                self._at[partition] = rest[-1][0] + 1 if rest else len(log)
                self._end_reported.discard(partition)
            elif partition not in self._end_reported:
                self._end_reported.add(partition)
                found.append(message(partition, at, None, None, KafkaError._PARTITION_EOF))
        if not found:
            self.closed.wait(min(timeout, 0.005))
        return found

    def list_topics(self, name: str, timeout: float) -> Any:
        there = dict.fromkeys(range(len(self._topic.logs)))
        return SimpleNamespace(topics={name: SimpleNamespace(error=None, partitions=there)})

    def get_watermark_offsets(self, partition: Any, timeout: float = 0.0, cached: bool = False) -> tuple[int, int]:
        return self._topic.first, len(self._topic.logs[partition.partition])

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> MemoryTopic:
    topic = MemoryTopic(3)
    monkeypatch.setattr(Kafka, "_consumer", lambda _self, _more=NOTHING: MemoryConsumer(topic))
    monkeypatch.setattr(Kafka, "_find_id", lambda _self: topic.id)
    return topic


@pytest.fixture
def world() -> World:
    return World(kind="kafka", records="whole", key="record")


def feed(world: World, *, once: bool = True, latest: bool = False) -> Kafka:
    return Kafka(world.scene(once=once), "nowhere", TOPIC, latest=latest)


@pytest.fixture
async def read_topic(world: World, topic: MemoryTopic) -> MemoryTopic:
    """All that is in it so far, five records in each partition, is in the stream."""
    topic.fill(5)
    await world.run_to_completion(feed(world))
    return topic


async def test_every_record_once_by_two_nodes_and_nothing_when_repeated(world: World, topic: MemoryTopic) -> None:
    wanted = topic.fill(500)
    one, two = feed(world), feed(world)
    async with world.node(one), world.node(two):
        await world.until_finished(one)
        await world.until_finished(two)
    await world.run_to_completion(feed(world))
    assert sorted(world.sink.texts) == sorted(wanted)
    assert {event.key for event in world.sink.events} == {"k0", "k1", "k2"}
    assert world.tally.by_origin["orders/1"].records == 500
    wanted = topic.fill(10)
    await world.run_to_completion(feed(world))
    assert sorted(world.sink.texts) == sorted(wanted)


async def test_a_task_reports_how_many_offsets_are_left(world: World, topic: MemoryTopic) -> None:
    topic.fill(2500)
    world.sink.closes_after = 3
    settings = NodeSettings(workers=1, look_s=0.02, lease=LeaseSettings(lease_s=5.0, margin_s=2.0))
    async with world.node(feed(world), settings):

        async def reported() -> bool:
            parts = await world.store.under("ingest/job/board/part/kafka/")
            return [each.report for each in statuses(parts, 0).values()] == [{"left": 1500, "unit": "offsets"}]

        await eventually_async(reported, SOON_S, "it is reported with the renewal of its lock")
        world.sink.open.set()


async def test_a_node_that_joins_gets_its_share(world: World, topic: MemoryTopic) -> None:
    """All stop, and begin anew where they were: no record is lost or doubled over it."""
    topic.fill(100)
    one, two = feed(world, once=False), feed(world, once=False)
    async with world.node(one) as first:
        await world.until(lambda: len(world.sink.events) == 300, "one has it all")
        async with world.node(two) as second:
            await world.until(lambda: bool(second.workers.running), "the other has a part")
            wanted = topic.fill(100)
            await world.until(lambda: len(world.sink.events) == 600, "both go on")
            assert first.workers.running and not first.workers.running & second.workers.running
    assert sorted(world.sink.texts) == sorted(wanted)


async def test_what_is_not_for_readers_is_passed_by(world: World, topic: MemoryTopic) -> None:
    topic.logs[0] += [None, (b"k", None), (None, b"a"), (b"k", b""), (b"k", b"x" * 9_000_000), None, None]
    await world.run_to_completion(feed(world))
    assert world.sink.events == [(b"a", None)]
    assert world.tally.total.skipped == 1 and "offset 4 has more than" in world.tally.problems[0]


async def test_records_that_kafka_has_deleted_are_reported(world: World, read_topic: MemoryTopic) -> None:
    wanted = read_topic.fill(5)
    read_topic.first = 7
    await world.run_to_completion(feed(world))
    assert wanted - set(world.sink.texts) == {f"{partition}-{number}" for partition in range(3) for number in (5, 6)}
    # Nothing else went wrong: the tasks went on.
    assert world.tally.total.skipped == len(world.tally.problems) == 3
    assert "Kafka does not have offset 5 any more; going on with offset 7" in world.tally.problems[0]


async def test_when_all_is_deleted_that_is_reported_once(world: World, read_topic: MemoryTopic) -> None:
    """The next consumer begins behind it, though nothing was read in between."""
    read_topic.fill(5)
    read_topic.first = 10
    for _ in range(2):
        again = feed(world)
        async with world.node(again):
            await world.until(lambda: world.tally.total.skipped == 3, "it is reported")
            await world.until_finished(again)
        assert list((await positions(world.store, NOTES)).values()) == [{"next": 10, "topic": "one"}] * 3
    assert world.tally.total.skipped == 3


async def test_a_topic_made_anew_is_read_from_its_beginning_and_reported(world: World, read_topic: MemoryTopic) -> None:
    read_topic.logs = [[(None, b"new")], [], []]
    again = feed(world, once=False)
    async with world.node(again):
        await world.until(lambda: "new" in world.sink.texts and world.tally.total.skipped == 3, "it is read")
    assert len(world.sink.texts) == 16
    assert "does not have offset 5 any more; going on with offset 0" in world.tally.problems[0]


@pytest.mark.parametrize("latest", [False, True])
async def test_a_topic_made_anew_is_read_from_its_beginning_however_long_it_is(
    world: World, read_topic: MemoryTopic, latest: bool
) -> None:
    """Also with `--from end`, which says where partitions begin of which nothing was read."""
    read_topic.id, read_topic.logs = "two", [[(None, b"new-%d" % number) for number in range(9)], [], []]
    await world.run_to_completion(feed(world, latest=latest))
    assert {f"new-{number}" for number in range(9)} <= set(world.sink.texts)
    assert f"{TOPIC}/0: the topic was made anew" in world.tally.problems[0]


@pytest.mark.parametrize("count", [3, 9], ids=["shorter", "longer"])
async def test_a_topic_made_anew_while_it_is_read_is_read_from_its_beginning(
    world: World, topic: MemoryTopic, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Kafka refuses the offset where the one before was longer, and says nothing where it was not."""
    monkeypatch.setattr("distributed_ingest.kafka.ID_EVERY_S", 0.01)
    monkeypatch.setattr("sluice_coordination.task._FIRST_PAUSE_S", 0.01)
    topic.fill(5)
    reading = feed(world, once=False)
    async with world.node(reading):
        await world.until_finished(reading)
        assert len(world.sink.events) == 15
        topic.id, topic.logs = "two", [[(None, b"new-%d-%d" % (p, n)) for n in range(count)] for p in range(3)]

        async def all_recorded() -> bool:
            await world.reach(reading)
            recorded = (await positions(world.store, NOTES)).values()
            return all(position == {"next": count, "topic": "two"} for position in recorded)

        await eventually_async(all_recorded, SOON_S, "the new one is through")
    again = feed(world)
    await world.run_to_completion(again)
    wanted = {f"new-{p}-{n}" for p in range(3) for n in range(count)}
    new = [text for text in world.sink.texts if text.startswith("new")]
    # What was behind the old position may have been taken before it was seen that this is another topic.
    assert set(new) == wanted and len(new) <= len(wanted) + 3 * max(0, count - 5)
    assert world.tally.total.skipped == 0


async def test_an_offset_that_is_there_and_was_refused_is_fetched_again(world: World, read_topic: MemoryTopic) -> None:
    wanted, read_topic.refusals = read_topic.fill(5), 2
    await world.run_to_completion(feed(world))
    assert sorted(world.sink.texts) == sorted(wanted) and world.tally.total.skipped == 0
    assert "has refused offset 5, which it has" in world.tally.problems[0]


async def test_an_error_of_no_partition_is_reported_and_stops_nothing(world: World, topic: MemoryTopic) -> None:
    topic.troubles.append(KafkaError._ALL_BROKERS_DOWN)
    wanted = topic.fill(5)
    await world.run_to_completion(feed(world))
    assert sorted(world.sink.texts) == sorted(wanted)
    assert any(problem.startswith("orders: ") for problem in world.tally.problems)


async def test_partitions_that_are_added_are_dealt_when_a_node_joins(world: World, topic: MemoryTopic) -> None:
    topic.fill(5)
    one = feed(world, once=False)
    async with world.node(one):
        await world.until(lambda: len(world.sink.events) == 15, "what is there is through")
        topic.logs.append([(b"k3", b"3-0")])
        two = feed(world, once=False)
        await world.reach(one)
        async with world.node(two):
            await world.until(lambda: "3-0" in world.sink.texts, "the new partition is read too")


async def test_an_empty_partition_is_gone_on_with_from_where_it_was_seen_empty(
    world: World, topic: MemoryTopic
) -> None:
    """With `--from end` too: what came while no node was there is not passed by."""
    reading = feed(world, once=False, latest=True)
    async with world.node(reading):

        async def recorded() -> bool:
            return list((await positions(world.store, NOTES)).values()) == [{"next": 0, "topic": "one"}] * 3

        await eventually_async(recorded, SOON_S, "where it begins is noted")
    wanted = topic.fill(1)
    again = feed(world, once=False, latest=True)
    async with world.node(again):
        await world.until(lambda: len(world.sink.events) == 3, "what came meanwhile is there")
    assert sorted(world.sink.texts) == sorted(wanted)


async def test_from_the_end_is_what_comes_from_now_on(world: World, topic: MemoryTopic) -> None:
    topic.fill(5)
    reading = feed(world, once=False, latest=True)
    async with world.node(reading):
        await world.until_finished(reading)
        topic.fill(1)
        await world.until(lambda: len(world.sink.events) == 3, "what is new comes")
    assert sorted(world.sink.texts) == ["0-5", "1-5", "2-5"]


@pytest.mark.parametrize(
    ("workers", "shares"), [((1,), [[0, 1, 2]]), ((1, 1), [[0, 2], [1]]), ((4, 4), [[0], [1], [2]])]
)
async def test_partitions_are_dealt_to_workers(
    world: World, topic: MemoryTopic, workers: tuple[int, ...], shares: list[list[int]]
) -> None:
    reading = feed(world)
    await reading.open()
    tasks = reading.source().partition([NodeEntry(str(number), count) for number, count in enumerate(workers)])
    assert [task.arguments["partitions"] for task in tasks] == shares
    await reading.close()


async def test_a_topic_that_is_not_there(world: World, topic: MemoryTopic) -> None:
    topic.logs.clear()
    reading = feed(world)
    with pytest.raises(RefusedError, match="there is no topic orders"):
        await reading.open()
    await reading.close()
