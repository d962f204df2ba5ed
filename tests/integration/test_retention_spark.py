"""retention-spark with a real Kafka and a real Spark, and no service that carries out its requests.

That Kafka wants TLS and a password of Spark's clients and the driver's own.
"""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import OFFSET_END, TopicPartition
from confluent_kafka.admin import AdminClient
from support.decisions import SentRequest, halves, hot, requests_of, sampled, tell
from support.effort import by_hand
from support.health import metric, readiness
from support.kafka import produce, read
from support.processes import stands_still
from support.secured_kafka import secure, shows_password
from support.spark import SPARK, Batches, kafka_and_spark
from support.wait import eventually, eventually_async

from harness import System
from retention_spark.history import last_decisions, line_of
from retention_spark.query import rules_of
from retention_spark.settings import SparkSettings
from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.ids import StreamId
from sluice.domain.stream.commands import DecisionKind, RecordDecision, ScaleStream, TruncateStream
from sluice.domain.stream.traffic import Direction
from sluice.engine.partition import partition_of
from sluice.engine.ports import NotLeaderError
from sluice.kafka.deleting import request_deletion
from sluice.kafka.leadership import Leadership
from sluice.kafka.topics import DEAD_LETTERS, RETENTION, RETENTION_MEMORY, SCALE, SCALE_MEMORY, Topic, ensure_topics
from sluice.lookback.jobs import run_job
from sluice.lookback.kafka import KafkaSource
from sluice.lookback.what_if import WHAT_IF, WhatIfQuestion
from sluice.policies.policy_parser import retention_of
from sluice.policies.reported import HistoryRow

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), by_hand("it starts Spark eight times")]

PARTITIONS = 4
READY_S = 300.0
DECIDED_S = 120.0
EXIT_UNFIT = 2
EXIT_ENDED = 3
AWAY_S = 20.0
TICK_S = 2.0
SESSION_S = 6.0
DAY_MS = 24 * 3600 * 1000

ENVIRONMENT = {
    "SLUICE_RETENTION_TICK_S": str(TICK_S),
    "SLUICE_RETENTION_PAUSE_S": "0",
    "SLUICE_SCALE_COOLDOWN_S": "3",
    "SLUICE_SCALE_TRIGGER_S": "0.5",
    "SLUICE_RETENTION_TRIGGER_S": "0.5",
    "SLUICE_SPARK_SAVE_S": "2",
    # Until a bucket has had its batch, only a batch that comes anyhow finds its time.
    "SLUICE_SPARK_IDLE_S": "10",
}
AT_ONCE = RetentionPolicy(RetentionType.SIZE, 0, 1 << 62)
AGED = RetentionPolicy(RetentionType.TIME, 15_000, 1 << 62)
FOR_DAYS, NO_TIME = (RetentionPolicy(RetentionType.TIME, least, 1 << 62) for least in (10 * DAY_MS, 0))
SECOND = "retention-spark-1"
POINT = {"SLUICE_CRASH_AT": "scale-decisions-sent"}


@pytest.fixture(scope="module")
def spark_system(runs_folder: Path) -> Iterator[System]:
    """Kafka, its topics, and the driver, which has yet to be started."""
    system = kafka_and_spark(runs_folder / "retention-spark", partitions=PARTITIONS, ready_s=READY_S, drivers=2)
    try:
        secured = secure(system)
        for name in (SPARK, SECOND):
            system.configure(name, {**ENVIRONMENT, **secured})
        system.start("kafka")
        yield system
    finally:
        system.down()


class Aged(NamedTuple):
    """A stream whose only sample is old enough at `due` (epoch ms), and the batches since it was sent."""

    due: int
    batches: Batches


@pytest.fixture(scope="module")
def aged(spark_system: System) -> Aged:
    """Sent before the first test that asks for it; the driver runs. It gets old while that test waits for others."""
    batches, at = Batches(spark_system), now_ms()
    tell(spark_system.kafka_bootstrap, sampled("aged", at, 500, AGED))
    return Aged(at + AGED.minimum, batches)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def memory_of(bootstrap: str, topic: Topic, key: str) -> bytes:
    """What is saved under a key."""
    return {message.key(): message.value() for message in read(bootstrap, topic.name)}.get(key.encode()) or b""


def have_remembered(bootstrap: str, stream: str) -> None:
    """Have a cut of the stream sampled that no report tells of any more, once it is saved."""
    tell(bootstrap, sampled(stream, now_ms(), 500, FOR_DAYS))
    eventually(lambda: memory_of(bootstrap, RETENTION_MEMORY, f"s/{stream}"), DECIDED_S, "what is remembered is saved")
    partition = partition_of(f"s/{stream}", PARTITIONS)
    assert partition != partition_of("s/aged", PARTITIONS), "others need those reports"
    admin, whole = AdminClient({"bootstrap.servers": bootstrap}), TopicPartition(RETENTION.name, partition, OFFSET_END)
    for deleted in request_deletion(admin, [whole], DECIDED_S).values():
        deleted.result(DECIDED_S)


def await_truncation(bootstrap: str, stream: str) -> list[SentRequest[TruncateStream]]:
    """To the cut that was sampled, for a policy that is new."""
    tell(bootstrap, sampled(stream, now_ms(), 0, NO_TIME, sample=None))
    cuts = eventually(lambda: requests_of(bootstrap, TruncateStream, [stream]), READY_S, f"{stream} is truncated")
    assert {one.command.cut[0] for one in cuts} == {500}
    return cuts


def await_role(system: System, name: str, role: str) -> None:
    eventually(lambda: f'"{role}"' in readiness(system, name)[1], DECIDED_S, f"{name} is {role}")


def history(system: System, stream: str) -> list[str]:
    folder = str(system.settings.decisions_dir / "history")
    return [row.code for row in last_decisions(folder, "s", stream, 100)]


def start(system: System) -> None:
    system.start(SPARK, deadline_s=READY_S)


def decided(bootstrap: str) -> dict[str, list[SentRequest[Any]]]:
    """The requests for each stream, in their order."""
    found: dict[str, list[SentRequest[Any]]] = {}
    requests: list[SentRequest[Any]] = [*requests_of(bootstrap, ScaleStream), *requests_of(bootstrap, TruncateStream)]
    for request in requests:
        found.setdefault(request.command.stream, []).append(request)
    return found


def test_reports_become_requests_and_a_driver_killed_in_a_batch_goes_on(spark_system: System) -> None:
    """The whole way, short enough for every change: the driver waits for topics, decides, dies, and decides again."""
    bootstrap, hots = spark_system.kafka_bootstrap, [f"hot{i}" for i in range(20)]
    spark_system.start(SPARK, wait=False, environment=POINT)
    eventually(lambda: "waiting for topics" in readiness(spark_system, SPARK)[1], READY_S, "it waits for topics")
    ensure_topics({"bootstrap.servers": bootstrap}, PARTITIONS, 1)
    tell(bootstrap, sampled("large", now_ms(), 500, AT_ONCE), *(hot(name, now_ms()) for name in hots))
    assert spark_system.wait_ended(SPARK, READY_S), "it dies once it has sent something"
    before = {request.command.stream for request in requests_of(bootstrap, ScaleStream)}
    assert before and spark_system.exit_code(SPARK) == -signal.SIGKILL
    tell(bootstrap, *(hot(name, now_ms()) for name in (*hots, "late")))
    start(spark_system)
    eventually(lambda: decided(bootstrap).keys() == {*hots, "late", "large"}, DECIDED_S, "all is decided")
    eventually(lambda: any(len(decided(bootstrap)[s]) > 1 for s in before), DECIDED_S, "the batch has run again")
    for stream, requests in decided(bootstrap).items():
        assert len({request.id for request in requests}) == 1, f"{stream}: requested once more it is the same request"
    scales, truncations = requests_of(bootstrap, ScaleStream), requests_of(bootstrap, TruncateStream)
    assert {(r.command.seals, r.command.ranges) for r in scales} == {((0,), ((0.0, 0.5), (0.5, 1.0)))}
    assert {tuple(r.command.cut.items()) for r in truncations} == {((0, 500),)}
    note = eventually(lambda: requests_of(bootstrap, RecordDecision, ["hot0"]), DECIDED_S, "why is noted")[0].command
    assert (note.kind, note.code) == (DecisionKind.SCALE, "split") and "above the target" in note.reason
    assert eventually(lambda: history(spark_system, "hot0"), DECIDED_S, "the table has it")[0] == "split"


@pytest.mark.usefixtures("aged")
def test_what_is_cold_within_the_cool_down_is_merged_after_it(spark_system: System) -> None:
    at = now_ms()
    cold = [halves("cold", at, segment, Direction.DOWN, epoch_since=at) for segment in (0, 1)]
    tell(spark_system.kafka_bootstrap, *cold)
    merged = eventually(
        lambda: requests_of(spark_system.kafka_bootstrap, ScaleStream, ["cold"]), DECIDED_S, "the merge is requested"
    )
    assert [(r.command.seals, r.command.ranges) for r in merged] == [((0, 1), ((0.0, 1.0),))]


def test_a_stream_is_truncated_by_time_on_a_tick_without_another_report(spark_system: System, aged: Aged) -> None:
    """Not before the sample is old enough; by hand, within two ticks of that moment.

    And what a batch takes that is under way at a tick, and the one that decides.
    """
    cut = eventually(
        lambda: requests_of(spark_system.kafka_bootstrap, TruncateStream, ["aged"]), DECIDED_S, "it is truncated"
    )
    assert [r.command.cut for r in cut] == [{0: 500}]
    late_s = (cut[0].at - aged.due) / 1000
    assert late_s >= 0
    longest_s = aged.batches.longest_s(DECIDED_S)
    print(f"\ntruncated {late_s} s after it was due; the longest batch took at most {longest_s} s")
    assert late_s <= 2 * TICK_S + 2 * longest_s


def test_what_cannot_be_read_is_a_dead_letter_and_its_key_goes_on(spark_system: System) -> None:
    produce(spark_system.kafka_bootstrap, SCALE.name, "s/odd", b"{not json")
    tell(spark_system.kafka_bootstrap, hot("odd", now_ms()))
    eventually(
        lambda: requests_of(spark_system.kafka_bootstrap, ScaleStream, ["odd"]), DECIDED_S, "the next report counts"
    )

    def letters() -> list[tuple[object, object]]:
        return [(one.key(), one.value()) for one in read(spark_system.kafka_bootstrap, DEAD_LETTERS.name)]

    # It is in another topic than the request, which may be seen first.
    assert eventually(letters, DECIDED_S, "it is a dead letter") == [(b"s/odd", b"{not json")]


def test_progress_shows_as_metrics(spark_system: System) -> None:
    tell(spark_system.kafka_bootstrap, hot("counted", now_ms()))
    eventually(lambda: metric(spark_system, SPARK, "sluice_spark_state_rows") > 0, DECIDED_S, "state is counted")
    assert metric(spark_system, SPARK, "sluice_spark_input_records_total") > 0
    assert metric(spark_system, SPARK, "sluice_spark_batch_seconds_count") > 0
    assert metric(spark_system, SPARK, "sluice_spark_state_bytes") > 0


def test_kafka_away_for_a_while(spark_system: System) -> None:
    pid = spark_system.pid(SPARK)
    spark_system.kill("kafka")
    back = time.monotonic() + AWAY_S
    eventually(lambda: time.monotonic() >= back, AWAY_S + 1, "Kafka was away for long enough")
    spark_system.start("kafka")
    tell(spark_system.kafka_bootstrap, hot("after-outage", now_ms()))
    eventually(
        lambda: requests_of(spark_system.kafka_bootstrap, ScaleStream, ["after-outage"]),
        READY_S,
        "it decides when Kafka is back",
    )
    spark_system.wait_ready(SPARK, READY_S)
    assert spark_system.pid(SPARK) == pid


def test_it_ends_when_its_jvm_does_so_that_it_is_started_again(spark_system: System) -> None:
    pid = spark_system.pid(SPARK)
    [java] = [int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]
    os.kill(java, signal.SIGKILL)
    assert spark_system.wait_ended(SPARK, DECIDED_S) and spark_system.exit_code(SPARK) == EXIT_ENDED


def test_a_driver_that_has_lost_its_checkpoints_cuts_as_policies_say(spark_system: System) -> None:
    """It does not run at first: see the test before. What no report tells any more is in what it has saved."""
    bootstrap, checkpoints = spark_system.kafka_bootstrap, spark_system.settings.decisions_dir / "checkpoints"
    start(spark_system)
    have_remembered(bootstrap, "kept")
    for folder in (*checkpoints.glob("scale-*"), *checkpoints.glob("retention-*")):
        # In one step: the driver goes on writing there.
        folder.rename(checkpoints.with_name(f"lost-{folder.name}"))
    tell(bootstrap, hot("anew", now_ms()), sampled("lost", now_ms(), 500, AT_ONCE))
    eventually(lambda: requests_of(bootstrap, TruncateStream, ["lost"]), READY_S, "it truncates")
    assert requests_of(bootstrap, TruncateStream, ["kept"]) == [], "nothing is cut before its policy says so"
    await_truncation(bootstrap, "kept")
    eventually(lambda: requests_of(bootstrap, ScaleStream, ["anew"]), READY_S, "it decides")


def test_a_second_driver_takes_over_from_a_frozen_one_which_does_nothing_when_it_wakes(spark_system: System) -> None:
    bootstrap = spark_system.kafka_bootstrap
    # Otherwise it would be decided on once more, and the first driver stand still before there is a second.
    eventually(lambda: b"steady" in memory_of(bootstrap, SCALE_MEMORY, "s/anew"), DECIDED_S, "its end is saved")
    spark_system.stop(SPARK)
    spark_system.start(SPARK, deadline_s=READY_S, environment={"SLUICE_CRASH_AT": "scale-decided:SIGSTOP"})
    await_role(spark_system, SPARK, "active")
    spark_system.start(SECOND, deadline_s=READY_S)
    await_role(spark_system, SECOND, "standby")
    have_remembered(bootstrap, "handed-on")
    tell(bootstrap, hot("frozen", now_ms()))
    eventually(lambda: stands_still(spark_system.pid(SPARK)), DECIDED_S, "it stands still behind its decision")
    began = time.monotonic()
    eventually(lambda: requests_of(bootstrap, ScaleStream, ["frozen"]), READY_S, "the second one decides")
    print(f"\ntaken over within {time.monotonic() - began:.1f} s")
    spark_system.thaw(SPARK)
    await_role(spark_system, SPARK, "standby")
    refused = "NotLeaderError"
    eventually(lambda: refused in spark_system.log(SPARK).read_text(), DECIDED_S, "it may not send what it decided")
    assert {request.by for request in requests_of(bootstrap, ScaleStream, ["frozen"])} == {f"retention-spark/{SECOND}"}
    assert {one.by for one in await_truncation(bootstrap, "handed-on")} == {f"retention-spark/{SECOND}"}
    spark_system.kill(SECOND)
    tell(bootstrap, hot("back", now_ms()))
    eventually(lambda: requests_of(bootstrap, ScaleStream, ["back"]), READY_S, "the first one decides again")


def test_neither_its_log_nor_a_command_line_shows_the_password(spark_system: System) -> None:
    assert shows_password(spark_system, [SPARK]) == []


def test_it_ends_in_order(spark_system: System) -> None:
    for name in filter(spark_system.is_running, (SPARK, SECOND)):
        spark_system.stop(name)
        assert spark_system.exit_code(name) == 0


async def test_another_instance_leads_when_the_leader_steps_down(spark_system: System) -> None:
    """No driver runs: see the test before."""
    client = {"bootstrap.servers": spark_system.kafka_bootstrap}
    # The first one is away for longer than the test lasts; the other finds no one when it is back.
    leader, other = Leadership(client, SESSION_S, 10 * DECIDED_S), Leadership(client, SESSION_S, 1.0)
    try:
        leader.start()
        await eventually_async(lambda: leader.term == 1, DECIDED_S, "it leads")
        other.start()
        await eventually_async(lambda: other.problem() is None, DECIDED_S, "the other stands by")
        assert (leader.term, other.term) == (1, 0)
        leader.step_down()
        await eventually_async(lambda: other.term == 1, DECIDED_S, "the other leads")
        with pytest.raises(NotLeaderError):
            await asyncio.to_thread(leader.commit, 1, RETENTION.name, {0: 7})
        await asyncio.to_thread(other.commit, 1, RETENTION.name, {0: 8})
        other.step_down()
        await eventually_async(lambda: other.term == 2, DECIDED_S, "it leads again")
        with pytest.raises(NotLeaderError):
            await asyncio.to_thread(other.commit, 1, RETENTION.name, {0: 9})
        assert (await asyncio.to_thread(other.positions, RETENTION.name, PARTITIONS))[0] == 8
    finally:
        await asyncio.gather(leader.stop(), other.stop())


def test_the_batch_job_and_the_gateways_helper_say_the_same_of_another_policy(
    spark_system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = {"SLUICE_SPARK_LOCAL": str(spark_system.settings.home / "what-if")}
    environment = {**os.environ, **spark_system.environment(SPARK), **local}
    command = [sys.executable, "-m", "retention_spark.what_if", "s/aged", "time=1h"]
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=READY_S,
        check=False,
        cwd=spark_system.settings.home,
    )
    assert done.returncode == 0, done.stderr
    happened, would = done.stdout.splitlines()[1].split(" | ")
    assert "1 of them to act" in happened and "0 of them to act" in would
    assert "no cut is older than the minimum of 1 hour" in done.stdout
    for name, value in spark_system.environment(SPARK).items():
        monkeypatch.setenv(name, value)
    settings, now = SparkSettings(), now_ms()
    question = WhatIfQuestion(StreamId("s", "aged"), now - DAY_MS, rules_of(settings), retention_of("time=1h"))
    source = KafkaSource(settings.kafka_bootstrap, settings.kafka_client(), "test")
    try:
        answer = run_job(WHAT_IF, question, source, now)
    finally:
        source.__exit__()
    shown = [line.partition(" | ")[2] for line in done.stdout.splitlines()[3:]]
    rows = [HistoryRow("", "retention", one.at, "s", "aged", one.code, one.reason, "", "") for one in answer.would]
    assert [line for line in shown if line] == [line_of(row) for row in rows]


def test_another_number_of_partitions_is_refused(spark_system: System) -> None:
    spark_system.start(SPARK, wait=False, environment={"SLUICE_PARTITIONS": "8"})
    assert spark_system.wait_ended(SPARK, READY_S)
    assert spark_system.exit_code(SPARK) == EXIT_UNFIT
    assert "has 4 partitions, configured are 8" in spark_system.log(SPARK).read_text()
