"""The programs: settings, generator, sinks, pruner, the keyed output, and what they say when something is amiss."""

import asyncio
import os
from collections.abc import Iterator
from uuid import uuid4

import msgspec
import pytest
import redis.exceptions
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from redis.asyncio import Redis
from support.redis_server import PrivateRedis, private_redis
from unit.at_least_once.cluster import DONE_S, SCOPE, Cluster, Running

from at_least_once.events import Event
from at_least_once.functions import NoSuchFunction, Result, load, upper_case
from at_least_once.generator import run_generator
from at_least_once.idempotent import KeyedStore, RedisOutput
from at_least_once.main import COMMANDS, main
from at_least_once.number_ranges import NumberRanges
from at_least_once.pruner import Pruner, make_checkpoint, run_pruner, show_members
from at_least_once.settings import (
    AppSettings,
    CheckpointSettings,
    GeneratorSettings,
    GroupSettings,
    IdempotentSinkSettings,
    SinkSettings,
    StarterSettings,
)
from at_least_once.sink import run_redis_sink, run_sink
from at_least_once.starter import as_environment
from at_least_once.tally import Summary, Tally
from harness import eventually_async
from sluice_client import (
    Client,
    MalformedEvents,
    ScaleType,
    ScalingPolicy,
    StreamCut,
    StreamSealed,
    Unavailable,
    open_reader,
)

MISSED = 3


def event(source: str, sequence: int) -> bytes:
    return Event.of(source, sequence, "key", "text").encode()


def test_a_tally_finds_what_is_missing_repeated_and_bad() -> None:
    tally = Tally(6)
    for data in (event("a", 5), event("a", 8), event("a", 5), event("b", 0), b"{}", event("a", 5)):
        tally.add(data)
    assert tally.summary() == Summary(events=6, different=3, repeated=2, bad=1, missing=3, sources=2)
    for data in (event("a", 6), event("a", 7), event("b", 1)):
        tally.add(data)
    assert tally.complete
    assert tally.summary().missing == 0


def test_without_an_expectation_only_gaps_are_missing() -> None:
    tally = Tally(0)
    for number in (5, 3, 8):
        tally.add(event("a", number))
    assert tally.summary().missing == 3


@given(st.lists(st.integers(-20, 20)))
def test_ranges_hold_what_was_added(numbers: list[int]) -> None:
    ranges, seen = NumberRanges(), set[int]()
    for number in numbers:
        assert ranges.add(number) == (number not in seen)
        seen.add(number)
    assert ranges.gaps == (max(seen) - min(seen) + 1 - len(seen) if seen else 0)
    assert len(ranges) == len([number for number in seen if number + 1 not in seen])


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


async def test_the_sink_counts_what_the_generator_wrote(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    stop = asyncio.Event()
    generator = GeneratorSettings(scope=SCOPE, output="stream2", count=500, rate=100_000, source="g", first=7)
    assert await run_generator(cluster.client, generator, stop) == 0
    sink = SinkSettings(scope=SCOPE, expect=500, quiet_s=0.1)
    assert await run_sink(cluster.client, sink, stop) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "g: 500 events, from 7 on"
    assert len([line for line in out if line.startswith("g ") and "event" in line]) == 500
    assert msgspec.json.decode(out[-1], type=Summary) == Summary(500, 500, 0, 0, 0, 1)
    too_many = SinkSettings(scope=SCOPE, expect=501, deadline_s=1.0, quiet=True)
    assert await run_sink(cluster.client, too_many, stop) == 1
    assert msgspec.json.decode(capsys.readouterr().out, type=Summary).missing == 1
    await cluster.controller.seal(SCOPE, "stream2")
    assert await run_sink(cluster.client, SinkSettings(scope=SCOPE, quiet=True), stop) == 0
    assert msgspec.json.decode(capsys.readouterr().out, type=Summary).different == 500


async def test_the_generator_keeps_its_rate(cluster: Cluster) -> None:
    stop, now = asyncio.Event(), asyncio.get_running_loop().time
    began = now()
    await run_generator(cluster.client, GeneratorSettings(scope=SCOPE, count=60, rate=200, source="g"), stop)
    assert 0.29 < now() - began < 5


async def test_a_pruner_takes_the_dead_offline_at_their_last_checkpoint(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await cluster.write(0, 100)
    worker = await cluster.worker(group="group", checkpoint_s=0)
    membership, group, stop = worker.membership, worker.group, asyncio.Event()
    await membership.join("dead")
    dead = await open_reader(cluster.client, SCOPE, "group", "dead")
    for _ in range(100):
        assert await dead.next() is not None
    done = dead.position.offsets
    by_hand = CheckpointSettings(scope=SCOPE, group="group")
    checkpoint = asyncio.create_task(make_checkpoint(cluster.client, by_hand, stop))
    while not checkpoint.done():
        await dead.next(0.05)
    assert StreamCut.from_text(capsys.readouterr().out.strip()).offsets == done
    await cluster.write(100, 50)
    for _ in range(50):
        assert await dead.next() is not None
    await membership.join("alive")
    await open_reader(cluster.client, SCOPE, "group", "alive")
    pruner = Pruner(membership, group, MISSED, "pruner")
    for _ in range(MISSED):
        await membership.beat("alive")
        await pruner.look()
        assert (await group.readers()).keys() == {"dead", "alive"}
    await membership.beat("alive")
    await pruner.look()
    assert (await membership.fetch()).members.keys() == {"alive"}
    state = await group.shared.refresh()
    assert state.assigned == {"alive": {}}
    assert state.unassigned == done
    await show_members(cluster.client, GroupSettings(scope=SCOPE, group="group"), stop)
    shown = capsys.readouterr().out
    assert "alive: 4 heartbeats" in shown and "without a reader: " in shown and "dead" not in shown


async def test_a_reader_without_a_member_is_pruned(cluster: Cluster) -> None:
    group = (await cluster.worker(group="group")).group
    await open_reader(cluster.client, SCOPE, "group", "left-behind")
    stop = asyncio.Event()
    settings = GroupSettings(scope=SCOPE, group="group", heartbeat_s=0.01)
    pruning = asyncio.create_task(run_pruner(cluster.client, settings, stop))

    async def pruned() -> bool:
        return not await group.readers()

    await eventually_async(pruned, DONE_S, "the reader is offline")
    stop.set()
    assert await pruning == 0


@pytest.fixture(scope="module")
def redis_server() -> Iterator[PrivateRedis]:
    with private_redis() as server:
        yield server


async def test_a_redelivered_result_changes_nothing(
    redis_server: PrivateRedis, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"out-{uuid4().hex}"
    for times in (1, 2):
        async with RedisOutput.open(redis_server.url, SCOPE, name, 5.0) as output:
            for number in range(1200 * times):
                output.add(f"segment-{number % 3}", number, Result("key", event("g", number)))
            await output.flush()
            output.add("segment-0", 10_000, Result("key", event("g", 10_000)))
            output.discard()
            await output.flush()
    async with Redis.from_url(redis_server.url) as redis:
        store = KeyedStore(redis, SCOPE, name)
        assert [len(await store.results(first)) for first in (0, 1000, 2000, 2400)] == [1000, 1000, 400, 0]
        assert await store.refused() == 1200
    settings = IdempotentSinkSettings(scope=SCOPE, output=name, redis_url=redis_server.url, expect=2400)
    assert await run_redis_sink(cluster.client, settings, asyncio.Event()) == 0
    assert "refused: 1200" in capsys.readouterr().out
    redis_server.client.rpush(f"at-least-once:{{{SCOPE}/{name}}}:applied", event("g", 0))
    assert await run_redis_sink(cluster.client, settings, asyncio.Event()) == 1


async def test_results_stored_since_the_last_checkpoint_are_refused_when_redelivered(
    redis_server: PrivateRedis, cluster: Cluster
) -> None:
    name = f"out-{uuid4().hex}"
    await cluster.write(0, 400)
    async with (
        RedisOutput.open(redis_server.url, SCOPE, name, 5.0) as first,
        RedisOutput.open(redis_server.url, SCOPE, name, 5.0) as second,
        Redis.from_url(redis_server.url) as redis,
    ):
        store = KeyedStore(redis, SCOPE, name)
        await cluster.lose_a_worker(store.results, first)
        stored = len(await store.results())
        other = Running(await cluster.worker(output=second))

        async def all_came() -> bool:
            return len(await store.results()) + await store.refused() == 400 + stored

        await eventually_async(all_came, DONE_S, "all events are processed")
        await other.stopped()
        assert sorted(Event.decode(result).sequence for result in await store.results()) == list(range(400))


async def test_the_keyed_output_waits_for_a_redis_that_takes_no_writes_for_now(
    redis_server: PrivateRedis, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    name = f"out-{uuid4().hex}"
    async with RedisOutput.open(redis_server.url, SCOPE, name, DONE_S) as output:
        redis_server.client.replicaof("127.0.0.1", 1)
        output.add("segment-0", 0, Result("key", event("g", 0)))
        flush = asyncio.create_task(output.flush())
        await eventually_async(lambda: flush.done() or "READONLY" in caplog.text, DONE_S, "it is refused")
        redis_server.client.replicaof("NO", "ONE")
        await flush
    async with Redis.from_url(redis_server.url) as found:
        assert len(await KeyedStore(found, SCOPE, name).results()) == 1


async def test_the_check_of_the_keyed_output_waits_for_redis(
    redis_server: PrivateRedis, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, failures = f"out-{uuid4().hex}", 2
    read = KeyedStore.results

    async def fails_at_first(store: KeyedStore, first: int = 0) -> list[bytes]:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise redis.exceptions.ConnectionError("away")
        return await read(store, first)

    monkeypatch.setattr(KeyedStore, "results", fails_at_first)
    settings = IdempotentSinkSettings(scope=SCOPE, output=name, redis_url=redis_server.url, patience_s=5.0)
    assert await run_redis_sink(cluster.client, settings, asyncio.Event()) == 0
    failures = 1_000_000
    impatient = IdempotentSinkSettings(scope=SCOPE, output=name, redis_url=redis_server.url, patience_s=0.05)
    with pytest.raises(redis.exceptions.ConnectionError):
        await run_redis_sink(cluster.client, impatient, asyncio.Event())


def test_options_win_over_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALO_HEARTBEAT_S", "0.5")
    monkeypatch.setenv("ALO_GROUP", "others")
    assert AppSettings().heartbeat_s == 0.5
    chosen = StarterSettings(name="w", workers=2, heartbeat_s=0.25)
    for name, value in as_environment(chosen).items():
        monkeypatch.setenv(name, value)
    worker = AppSettings()
    assert (worker.heartbeat_s, worker.group, worker.name) == (0.25, "others", "worker")


def test_the_variables_of_pravegas_samples_come_last(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PRAVEGA_CONTROLLER": "tcp://pravega:9090",
        "PRAVEGA_SCOPE": "ours",
        "PRAVEGA_STREAM_1": "first",
        "PRAVEGA_STREAM_2": "second",
        "PRAVEGA_MIN_NUM_SEGMENTS": "6",
        "PRAVEGA_TARGET_RATE_EVENTS_PER_SEC": "10",
        "HEARTBEAT_INTERVAL_MS": "500",
        "CHECKPOINT_PERIOD_MS": "",
        "ALO_SCOPE": "mine",
    }.items():
        monkeypatch.setenv(name, value)
    app = AppSettings(name="w")
    assert (app.controller, app.scope, app.input, app.output) == ("tcp://pravega:9090", "mine", "first", "second")
    assert (app.heartbeat_s, app.checkpoint_s) == (0.5, 1.0)
    assert (GeneratorSettings().output, SinkSettings().input) == ("first", "second")
    assert app.scaling == SinkSettings().scaling == ScalingPolicy(ScaleType.EVENTS, 10, 2, 6)
    monkeypatch.setenv("HEARTBEAT_INTERVAL_MS", "soon")
    with pytest.raises(ValidationError):
        GroupSettings()


async def test_streams_are_made_to_scale_by_rate_if_told_to(cluster: Cluster) -> None:
    await cluster.worker(target_rate=100, scale_factor=3)
    for stream in ("stream1", "stream2"):
        found = (await cluster.client.streams.describe(SCOPE, stream)).config.scaling
        assert found == ScalingPolicy(ScaleType.EVENTS, 100, 3, 4)


def test_functions_are_found_by_name() -> None:
    assert load("at_least_once.functions:upper_case") is upper_case
    for name in ("upper_case", "at_least_once.functions:nothing", "at_least_once.nowhere:upper_case", ""):
        with pytest.raises(NoSuchFunction):
            load(name)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "generator"),
        (["--help"], 0, "redis-sink"),
        (["dance"], 2, "COMMAND"),
        (["app", "--heartbeat-s", "0"], 2, "--heartbeat-s is '0': it must be more than 0"),
        (["members", "--controller", "http://host:1"], 2, "not the address of a controller: 'http://host:1'"),
        (["members", "--log-level", "loud"], 2, "--log-level is 'loud': it must be 'debug', 'info'"),
        (["app", "--redis-url", "redis://me:pa/ss@host"], 2, "--redis-url is 'redis://***@host': it must be redis://"),
        (["app", "--controller", "memory:", "--function", "no.such:function"], 1, "no.such"),
        (["members", "--controller", "memory:"], 1, "GroupMissing"),
        (["members", "--controller", "127.0.0.1:1", "--patience-s", "0.2"], 1, "did not answer"),
    ],
)
def test_what_is_amiss_is_said(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("ALO_")]:
        monkeypatch.delenv(name)
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert said in captured.out + captured.err


@pytest.mark.parametrize(
    "error",
    [
        StreamSealed("demo/orders"),
        MalformedEvents(109, "type 7"),
        redis.exceptions.ConnectionError("away"),
        Unavailable("60 s"),
    ],
)
@pytest.mark.parametrize("deep", [False, True])
def test_a_program_ends_with_a_message(
    error: Exception, deep: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(client: Client, settings: GroupSettings, stop: asyncio.Event) -> int:
        raise ExceptionGroup("tasks", [ExceptionGroup("tasks", [error])]) if deep else error

    monkeypatch.setitem(COMMANDS, "members", COMMANDS["members"]._replace(run=fail))
    assert main(["members", "--controller", "memory:"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"{type(error).__name__}: {error}" and len(str(error)) > 3


def test_a_program_that_is_wrong_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(client: Client, settings: GroupSettings, stop: asyncio.Event) -> int:
        raise ExceptionGroup("tasks", [KeyError("x"), StreamSealed("demo/orders")])

    monkeypatch.setitem(COMMANDS, "members", COMMANDS["members"]._replace(run=fail))
    with pytest.raises(ExceptionGroup) as raised:
        main(["members", "--controller", "memory:"])
    assert raised.group_contains(KeyError)
