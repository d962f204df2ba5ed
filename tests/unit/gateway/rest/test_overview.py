"""The overview: counts that are kept, and a sentence that says what is wrong first. The partitions of requests."""

import asyncio

import pytest
from support.wait import eventually_async
from unit.gateway.rest.test_sluice_others import heartbeat
from unit.gateway.rest.world import World
from unit.gateway.system import MemorySystem

from api_gateway.console import overview, partitions
from api_gateway.console.dead_letters import LetterCounts
from api_gateway.console.feed import watch
from api_gateway.console.overview import Counts, FailingWorkflow, Found, Workflows, judged
from api_gateway.console.tally import Tally
from api_gateway.edge.health import SERVICES
from api_gateway.edge.heartbeats import CURRENT_MS
from sluice.domain.cluster.events import ContainersUnresponsive, MemberJoined
from sluice.domain.ids import StreamId
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.events import DecisionRecorded, StreamSealStarted
from sluice.domain.workflow import WorkflowStepFailed
from sluice.engine.ports import PartitionProgress
from sluice.insight.progress import Progress

S = "/sluice/v1"
ST = StreamId("sc", "st")
DEADLINE_S = 60.0
NONE = dict.fromkeys(Progress, 0)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are shared for no time, changes known at once, and what is read is waited for."""
    monkeypatch.setattr(overview, "COUNT_S", DEADLINE_S)
    monkeypatch.setattr(overview, "LETTERS_WAIT_S", DEADLINE_S)
    monkeypatch.setattr(overview, "SHARED_S", 0.0)
    monkeypatch.setattr(overview, "SHARED_FACTOR", 0)
    monkeypatch.setattr(overview, "LETTERS_S", 0.0)
    monkeypatch.setattr(watch, "TURN_S", 0.01)


async def counts(world: World) -> dict[str, int]:
    found: dict[str, int] = (await world.get(f"{S}/overview"))["counts"]
    return found


async def test_counts_follow_what_changes(world: World, stream: str) -> None:
    first = await counts(world)
    assert first == {
        "scopes": 1, "streams": 1, "groups": 0, "tables": 0, "segments": 2, "transactionsOpen": 0,
        "transactionsWaiting": 0,
    }  # fmt: skip
    assert (await world.call("POST", f"{stream}/transactions", {"leaseMs": 30_000})).status_code == 201
    body = {"scaling": {"type": "fixed", "minSegments": 3}}
    assert (await world.call("PUT", f"{S}/scopes/sc/streams/other", body)).status_code == 201

    async def known() -> bool:
        found = await counts(world)
        return (found["streams"], found["segments"], found["transactionsOpen"]) == (2, 5, 1)

    await eventually_async(known, DEADLINE_S, "the counts are as the states")
    assert (await world.call("POST", f"{S}/scopes/sc/streams/other/seal")).status_code == 200
    assert (await world.call("DELETE", f"{S}/scopes/sc/streams/other")).status_code == 204

    async def gone() -> bool:
        found = await counts(world)
        return (found["streams"], found["segments"]) == (1, 2)

    await eventually_async(gone, DEADLINE_S, "a deleted stream is counted no more")


async def test_counts_are_right_after_the_watch_has_missed_something(
    world: World, stream: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await counts(world)
    monkeypatch.setattr(watch, "MAX_RECORDED", 0)
    body = {"scaling": {"type": "fixed", "minSegments": 3}}
    assert (await world.call("PUT", f"{S}/scopes/sc/streams/other", body)).status_code == 201

    async def known() -> bool:
        return (await counts(world))["segments"] == 5

    await eventually_async(known, DEADLINE_S, "all are counted anew")


async def test_the_sentence_names_what_fails(world: World, stream: str) -> None:
    world.letters.letter("sc/st", b"value")
    await world.system.stop_deciding()
    failed = WorkflowStepFailed(f"stream:{ST}", "seal-segments", 3, "container 2 does not answer")
    await world.system.append(ST.key, StreamSealStarted(*ST, at=1), failed)
    now = world.runtime.clock.now_ms()
    hot = DecisionRecorded(*ST, kind=DecisionKind.SCALE, code="split", reason="hot", at=now, acts=True)
    await world.system.append(ST.key, hot)
    found = await world.get(f"{S}/overview")
    assert found["level"] == "bad" and not found["ready"]
    # Nothing runs in this world: what the workflow waits for says more than its last error.
    said = found["sentence"].split("; ")
    assert said[-3:-1] == ["no segment store runs containers 0, 1, 2, 3", said[-2]]
    assert said[-2].startswith("1 workflow failing, the oldest for ") and "it waits for container" in said[-2]
    assert said[-1] == "1 dead letter."
    assert found["workflows"]["oldestFailing"]["aggregate"] == f"stream:{ST}"
    assert (found["deadLetters"], found["hotStreams"]) == (1, ["sc/st"])


async def test_containers_with_the_same_trouble_are_named_together(world: World) -> None:
    await world.cover_containers()
    joined = [MemberJoined(service=name, instance=name, endpoints={}, at=5) for name in SERVICES]
    await world.system.append("cluster", *joined)
    assert (await world.get(f"{S}/overview"))["level"] == "ok"
    first, second = SERVICES[0], SERVICES[1]
    await world.system.append(
        "cluster",
        ContainersUnresponsive(instance=first, containers=(0, 1, 3), at=7_000),
        ContainersUnresponsive(instance=second, containers=(0, 1), at=9_000),
    )
    found = await world.get(f"{S}/overview")
    assert (found["level"], found["ready"]) == ("bad", False)
    assert found["problems"] == [
        f"containers 0, 1 of segment store store:1 have not answered {first}, {second} since 1970-01-01T00:00:07Z",
        f"container 3 of segment store store:1 has not answered {first} since 1970-01-01T00:00:07Z",
    ]
    assert found["sentence"] == f"C{'; '.join(found['problems'])[1:]}."


async def test_a_service_whose_heartbeats_are_all_missed_is_missing(world: World) -> None:
    await world.cover_containers()
    joined = [MemberJoined(service=name, instance=name, endpoints={}, at=5) for name in SERVICES]
    await world.system.append("cluster", *joined)
    world.last_heartbeats.observe([heartbeat("cluster-manager", 7)])
    assert (await world.get(f"{S}/overview"))["level"] == "ok"
    world.last_heartbeats.observe([heartbeat("txn-manager", 7 + CURRENT_MS + 1)])
    found = await world.get(f"{S}/overview")
    assert (found["level"], found["problems"]) == ("bad", ["cluster-manager: no instance"])


async def test_a_gateway_that_cannot_serve_is_bad(world: World) -> None:
    world.runtime.checks["kafka"] = lambda: "has answered nothing for 9 s"
    found = await world.get(f"{S}/overview")
    assert (found["level"], found["ready"]) == ("bad", False)
    assert found["sentence"].startswith("Kafka: has answered nothing for 9 s")


async def test_a_letter_that_comes_when_another_goes_is_told_of(world: World) -> None:
    partition, offset = world.letters.letter("sc/st", b"value")
    before = await world.get(f"{S}/overview")
    assert (await world.call("POST", f"{S}/dead-letters/{partition}/{offset}/drop")).status_code == 200
    world.letters.letter("sc/st", b"value")

    async def another() -> bool:
        found = await world.get(f"{S}/overview")
        assert found["deadLetters"] <= before["deadLetters"]
        return bool(found["deadLetterRecords"] == before["deadLetterRecords"] + 2)

    await eventually_async(another, DEADLINE_S, "the records are counted")


async def test_while_dead_letters_cannot_be_read_the_rest_is_shown(world: World) -> None:
    world.letters.away = True
    found = await world.get(f"{S}/overview")
    assert "deadLetters" not in found and found["counts"]["scopes"] == 0


def test_one_sentence_says_how_it_is() -> None:
    few = Counts(1, 2, 0, 0, segments=None, transactions_open=None, transactions_waiting=None)
    fine = Found(few, Workflows(NONE, None), LetterCounts(0, 0), 0, [], at=0)
    assert judged(fine, None, [], []) == ("ok", "All is well: 2 streams in 1 scope; nothing is under way.")
    failing = FailingWorkflow("stream:a/b", "scale-stream", since=0, error="<script>\nsecond line")
    workflows = Workflows({**NONE, Progress.FAILING: 3, Progress.RUNNING: 1}, failing)
    bad = Found(few, workflows, None, 2, [], at=12 * 60_000)
    level, sentence = judged(bad, failing, [], ["store: away"])
    assert level == "warn"
    assert sentence.split("; ") == [
        "3 workflows failing, the oldest for 12 min: <script>",
        "2 transactions open past the end of the lease",
        "store: away.",
    ]
    assert judged(bad, None, [], []).sentence == "3 workflows failing; 2 transactions open past the end of the lease."


async def test_a_count_that_is_given_up_is_not_known(idle: MemorySystem) -> None:
    watched = watch.ChangeWatch(idle.runtime.journal)
    tally = Tally(idle.runtime.journal, watched)
    answer = asyncio.ensure_future(tally.totals(DEADLINE_S))
    await asyncio.sleep(0)
    await watched.stop()
    assert await answer is None
    assert await tally.totals(DEADLINE_S) is not None
    await watched.stop()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ("RouteStale: the store is away: wait. [CreateSegment a/b/0; more]", "the store is away: wait"),
        ("container 2 does not answer; each of the last 16 attempts ended like this", "container 2 does not answer"),
        ("Kafka: has answered nothing for 9.5 s", "Kafka: has answered nothing for 9.5 s"),
        ("x" * 1000, "x" * 120 + "…"),
        ("", "no reason recorded"),
    ],
)
def test_the_sentence_has_the_first_clause_of_an_error(error: str, says: str) -> None:
    found = failing_with(error)
    seen = judged(found, found.workflows.oldest_failing, [], [])
    assert seen.sentence == f"1 workflow failing, the oldest for 12 min: {says}."


def test_the_sentence_has_a_cause_once_and_not_the_error_that_it_led_to() -> None:
    container = "container 2 does not answer txn-manager-a"
    found = failing_with("RouteStale: later")
    seen = judged(found, found.workflows.oldest_failing, [container], ["store: away"], "it waits for container 2")
    assert seen.level == "bad"
    assert seen.sentence == (
        "Container 2 does not answer txn-manager-a; "
        "1 workflow failing, the oldest for 12 min: it waits for container 2; store: away."
    )


def failing_with(error: str) -> Found:
    """What is found where one workflow has failed for twelve minutes."""
    counts = Counts(1, 2, 0, 0, segments=None, transactions_open=None, transactions_waiting=None)
    oldest = FailingWorkflow("stream:a/b", "scale-stream", since=0, error=error)
    return Found(counts, Workflows({**NONE, Progress.FAILING: 1}, oldest), LetterCounts(0, 0), 0, [], at=12 * 60_000)


@pytest.fixture
def fresh_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Kafka said is shared by all calls of a test, however long they take."""
    monkeypatch.setattr(partitions, "FRESH_MS", DEADLINE_S * 1000)


@pytest.mark.usefixtures("fresh_for_long")
async def test_partitions_are_read_from_kafka_at_most_once_in_a_while(world: World) -> None:
    world.groups.items = [
        PartitionProgress("sluice.commit", 0, "txn-1", 3, 17, 1_500),
        PartitionProgress("sluice.commit", 1, "", 0, 4, None),
    ]
    found = await world.get(f"{S}/partitions")
    assert found["items"] == [
        {"topic": "sluice.commit", "partition": 0, "owner": "txn-1", "lag": 3, "oldestOpenMs": 1_500, "end": 17},
        {"topic": "sluice.commit", "partition": 1, "lag": 0, "end": 4},
    ]
    assert (await world.get(f"{S}/partitions"))["at"] == found["at"]
    assert world.groups.fetched == 1


@pytest.mark.usefixtures("fresh_for_long")
async def test_callers_who_wait_while_kafka_is_away_share_one_failure(world: World) -> None:
    world.groups.away = True
    answers = await asyncio.gather(*(world.call("GET", f"{S}/partitions") for _ in range(5)))
    assert {answer.status_code for answer in answers} == {503}
    assert world.groups.fetched == 1
