"""The read barrier on Kafka: whatever goes wrong, the next question is answered, and a thread that ended shows."""

import asyncio
import threading
from types import SimpleNamespace

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, Producer, TopicPartition
from support.wait import SOON_S, eventually, eventually_async

from sluice.engine.ports import EndsUnknownError
from sluice.kafka import ends, leader_ends
from sluice.kafka.ends import EndOffsets


class Client:
    """Fails in the ways there are, then answers; never for the partitions that are `dead`, late for the `frozen`."""

    failing: list[str]
    dead: set[int]
    frozen: set[int]
    thawed: threading.Event
    offset = 7
    error: KafkaError | None = None
    made = 0

    def __init__(self, _client: object) -> None:
        self._fail("made")
        Client.made += 1

    def offsets_for_times(self, question: list[TopicPartition], **_options: float) -> list[SimpleNamespace]:
        self._fail("queried")
        partitions = {p.partition for p in question}
        if not Client.frozen.isdisjoint(partitions):
            Client.thawed.wait(SOON_S)
        if dead := Client.dead.intersection(partitions):
            raise ValueError(f"{dead} are dead")
        return [SimpleNamespace(partition=p.partition, offset=Client.offset, error=Client.error) for p in question]

    def _fail(self, when: str) -> None:
        if Client.failing and Client.failing[0] == when:
            Client.failing.pop(0)
            raise ValueError(f"cannot be {when}")


class Brokers:
    """Say which of them leads each partition."""

    leaders: dict[int, int]

    def __init__(self, _client: object) -> None:
        pass

    def list_topics(self, timeout: float) -> SimpleNamespace:
        assert timeout > 0
        partitions = {p: SimpleNamespace(leader=leader) for p, leader in Brokers.leaders.items()}
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions=partitions)})


class EndingClient:
    def __init__(self, _client: object) -> None:
        raise SystemExit


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_ends, "Consumer", Client)
    monkeypatch.setattr(ends, "AdminClient", Brokers)
    Client.failing, Client.dead, Client.offset, Client.error = [], set(), 7, None
    Client.frozen, Client.thawed = set(), threading.Event()
    Brokers.leaders = {0: 1}


async def test_the_ends_are_those_of_the_partitions_after_each_append() -> None:
    """With the real client, on the broker that librdkafka has for tests."""
    producer = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    broker = next(iter(producer.list_topics(timeout=10).brokers.values()))
    ends = EndOffsets({"bootstrap.servers": f"{broker.host}:{broker.port}"}, "t", 3, 5.0)
    for appended, partition in enumerate((0, 2, 2), 1):
        producer.produce("t", b"record", partition=partition)
        producer.flush(10)
        answer = await asyncio.wait_for(ends.request(), SOON_S)
        assert sum(answer.values()) == appended
    assert answer == {0: 1, 1: 0, 2: 2}
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "the thread ends")


@pytest.mark.usefixtures("client")
async def test_a_question_that_fails_is_repeated_whatever_went_wrong() -> None:
    Client.failing = ["made", "made", "queried", "made", "made"]
    ends = EndOffsets({}, "t", 1, 10.0)
    assert ends.failure is None and not _threads(), "there is no request"
    assert await asyncio.wait_for(ends.request(), SOON_S) == {0: 7} and ends.failure is None
    assert Client.failing == []
    made = Client.made
    assert await asyncio.wait_for(ends.request(), SOON_S) == {0: 7} and Client.made == made, "the client stays"
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "the thread ends")
    assert ends.failure is None, "stopped"


@pytest.mark.usefixtures("client")
async def test_an_offset_that_is_none_or_has_an_error_is_no_answer() -> None:
    Client.offset = OFFSET_INVALID
    ends = EndOffsets({}, "t", 1, 0.0)
    with pytest.raises(EndsUnknownError, match="no answer"):
        await asyncio.wait_for(ends.request(), SOON_S)
    Client.offset, Client.error = 7, KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)
    with pytest.raises(EndsUnknownError, match="Not leader"):
        await asyncio.wait_for(ends.request(), SOON_S)
    Client.error = None
    assert await asyncio.wait_for(ends.request(), SOON_S) == {0: 7}
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "the thread ends")


@pytest.mark.usefixtures("client")
async def test_a_leader_that_is_away_takes_its_own_partitions_along_and_no_others() -> None:
    Client.dead, Brokers.leaders = {1, 3}, {0: 1, 1: 2, 2: 1, 3: 2}
    ends = EndOffsets({}, "t", 4, 0.0)
    assert await asyncio.wait_for(ends.request((0,)), SOON_S) == {0: 7, 2: 7}, "the first question was for all"
    assert await asyncio.wait_for(ends.request(), SOON_S) == {0: 7, 2: 7}, "what is known of all"
    with pytest.raises(EndsUnknownError, match="dead"):
        await asyncio.wait_for(ends.request((1, 3)), SOON_S)
    assert await asyncio.wait_for(ends.request(()), SOON_S) == {}
    Brokers.leaders = {0: 1, 1: 1, 2: 1, 3: -1}
    Client.dead = {3}
    assert (await asyncio.wait_for(ends.request((1,)), SOON_S))[1] == 7, "it has another leader"
    Client.dead = set()
    assert await asyncio.wait_for(ends.request(), SOON_S) == dict.fromkeys(range(4), 7)
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "all threads end")


@pytest.mark.usefixtures("client")
async def test_partitions_that_move_to_a_leader_do_not_keep_it_from_answering_for_its_own() -> None:
    Client.dead, Brokers.leaders = {1}, {0: 1, 1: 2}
    ends = EndOffsets({}, "t", 2, 0.0)
    assert await asyncio.wait_for(ends.request((0,)), SOON_S) == {0: 7}
    Brokers.leaders = {0: 1, 1: 1}
    for _ in range(2):
        with pytest.raises(EndsUnknownError, match="dead"):
            await asyncio.wait_for(ends.request((1,)), SOON_S)
        assert await asyncio.wait_for(ends.request((0,)), SOON_S) == {0: 7}
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "all threads end")


@pytest.mark.usefixtures("client")
async def test_partitions_of_different_leaders_that_come_to_the_same_one_are_asked_for_together() -> None:
    Client.dead, Brokers.leaders = {1, 2}, {0: 1, 1: 2, 2: 3}
    ends = EndOffsets({}, "t", 3, 0.2)

    async def are_so_many(questions: int) -> bool:
        with pytest.raises(EndsUnknownError, match="dead"):
            await asyncio.wait_for(ends.request((1, 2)), SOON_S)
        return len(_threads()) == questions

    await eventually_async(lambda: are_so_many(3), SOON_S, "each leader has a question")
    Brokers.leaders = {0: 1, 1: 3, 2: 3}
    await eventually_async(lambda: are_so_many(2), SOON_S, "each leader has a question")
    Client.dead = set()
    assert await asyncio.wait_for(ends.request((1,)), SOON_S) == {1: 7, 2: 7}
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "all threads end")


@pytest.mark.usefixtures("client")
async def test_the_time_that_another_leader_took_is_not_counted_against_a_leader() -> None:
    Client.dead, Client.frozen, Brokers.leaders = {1}, {1}, {0: 1, 1: 2}
    ends = EndOffsets({}, "t", 2, 1.0)
    request = ends.request((0,))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(request), 1.1)
    Client.failing = ["queried"]
    Client.thawed.set()
    assert await asyncio.wait_for(request, SOON_S) == {0: 7} and Client.failing == []
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "all threads end")


@pytest.mark.usefixtures("client")
async def test_what_some_leaders_answer_is_not_kept_back_by_one_that_is_silent() -> None:
    Client.dead, Brokers.leaders = {1}, {0: 1, 1: 2}
    ends = EndOffsets({}, "t", 2, 0.2)
    assert await asyncio.wait_for(ends.request(), SOON_S) == {0: 7}
    Client.dead, Client.frozen = set(), {1}
    silent = ends.request((1,))
    assert await asyncio.wait_for(ends.request(), SOON_S / 2) == {0: 7}
    assert not silent.done()
    Client.thawed.set()
    assert await asyncio.wait_for(silent, SOON_S) == {1: 7}
    ends.stop()
    eventually(lambda: not _threads(), SOON_S, "all threads end")


@pytest.mark.usefixtures("client")
async def test_who_waits_for_a_read_barrier_that_stops_learns_it() -> None:
    Client.dead = {0}
    ends = EndOffsets({}, "t", 1, 1.0)
    waiting = ends.request()
    ends.stop()
    for request in (waiting, ends.request()):
        with pytest.raises(EndsUnknownError, match="not followed any more"):
            await asyncio.wait_for(request, SOON_S)
    eventually(lambda: not _threads(), SOON_S, "the thread ends")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_read_barrier_whose_thread_has_ended_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_ends, "Consumer", EndingClient)
    ends = EndOffsets({}, "t", 1, 1.0)
    ends.request()
    eventually(lambda: "has ended" in (ends.failure or ""), SOON_S, "the end of the thread shows")


def _threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "read-barrier"]
