"""A Kafka with an authorizer: the services work with the rights of `sluice.kafka.access`, and need every one of them.

The console is a process of its own, beside a gateway that serves Pravega's interfaces alone.
It wants TLS and a password, with Kafka's own bounds of sessions: all clients get along with that, but for Spark's own,
which are in `test_retention_spark.py`. Each service is a user of its own. The whole system does something of
everything; what Kafka refused, and by which rights it let something pass, is in its log.
"""

import json
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from support.auto_scale import auto_scale_event, report_load
from support.controller import Controller, controller, info
from support.effort import by_hand
from support.guarded_kafka import GuardedKafka, Used
from support.kafka import produce, read
from support.secured_kafka import shows_password
from support.transactions import Transactions
from typer.testing import CliRunner

from harness import System, eventually
from sluice.addresses import host_and_port
from sluice.controller_api import controller_pb2 as pb
from sluice.kafka.access import Operation, Right, rights
from sluice.kafka.topics import ABORT, JOURNAL, REPLAYABLE, SNAPSHOTS, STATISTICS_WINDOWS, TOPICS
from sluice.kafka_config import clients
from sluice.kafka_config.conf import read_conf
from sluice_cli.main import app

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), by_hand("a Kafka that knows rights, and a Spark")]

GATEWAY, CONSOLE = "api-gateway-0", "api-gateway-1"
PARTITIONS = 2
LONG_MS = 120_000
"""A lease that does not end while others are waited for."""
READY_S = 300.0
SOON_S = 120.0
SCOPE = "guarded"
QUICK = {
    "SLUICE_REPORT_INTERVAL_S": "0.5",
    "SLUICE_SAMPLE_INTERVAL_S": "1",
    "SLUICE_CHANGE_INTERVAL_S": "0.5",
    "SLUICE_RETENTION_TICK_S": "2",
    "SLUICE_RETENTION_PAUSE_S": "0",
    "SLUICE_RETENTION_TRIGGER_S": "1",
    "SLUICE_SPARK_SAVE_S": "1",
    "SLUICE_SCALE_COOLDOWN_S": "3",
    "SLUICE_SCALE_TRIGGER_S": "0.5",
    "SLUICE_ARCHIVE_TRIGGER_S": "1",
    "SLUICE_SNAPSHOT_MIN_RECORDS": "5",
    "SLUICE_SNAPSHOT_INTERVAL_S": "0.5",
    "SLUICE_SNAPSHOT_LOOK_S": "0.3",
    "SLUICE_JOURNAL_KEEP": "PT0S",
}
RIGHTS = rights()


@pytest.fixture(scope="module")
def guarded(runs_folder: Path) -> System:
    return System(
        runs_folder / "kafka-access",
        segment_stores=1,
        api_gateways=2,
        retention_sparks=1,
        partitions=PARTITIONS,
        start_timeout_s=READY_S,
    )


@pytest.fixture(scope="module")
def kafka(guarded: System) -> Iterator[GuardedKafka]:
    """Everything runs, each service as a user of its own."""
    kafka = GuardedKafka(guarded, RIGHTS)
    archive = {"SLUICE_ARCHIVE": str(guarded.settings.home / "archive")}
    try:
        guarded.start("kafka")
        for user, granted in RIGHTS.items():
            kafka.grant(user, granted)
        for name in guarded.names:
            if (user := "console" if name == CONSOLE else name.rpartition("-")[0]) in RIGHTS:
                serves = {"SLUICE_SERVES": "pravega" if name == GATEWAY else "console"}
                guarded.configure(name, {**kafka.environment(user), **archive, **QUICK, **serves})
        guarded.up()
        yield kafka
    finally:
        guarded.down()


@pytest.fixture(scope="module")
def gateway(guarded: System, kafka: GuardedKafka) -> Iterator[Controller]:
    assert kafka is not None
    with controller(guarded.grpc_address) as client:
        yield client


@pytest.fixture(scope="module")
def rest(guarded: System, kafka: GuardedKafka) -> Iterator[httpx.Client]:
    """The console's."""
    assert kafka is not None
    with httpx.Client(base_url=f"{guarded.rest_urls[1]}/sluice/v1", timeout=60, trust_env=False) as client:
        yield client


def begin(guarded: System, topic: str) -> int:
    """The sum of where the topic's partitions begin."""
    admin = AdminClient({"bootstrap.servers": guarded.kafka_bootstrap})
    answers = admin.list_offsets({TopicPartition(topic, p): OffsetSpec.earliest() for p in range(PARTITIONS)})
    return sum(int(answer.result().offset) for answer in answers.values())


def do_transactions(gateway: Controller) -> None:
    assert gateway.create_stream(SCOPE, "st") == "SUCCESS"
    transactions = Transactions(gateway, SCOPE)
    committed, aborted, abandoned = (transactions.open() for _ in range(3))
    sealed = transactions.open(LONG_MS)
    assert transactions.commit(committed) == transactions.abort(aborted) == "SUCCESS"
    assert transactions.ping(abandoned, lease_ms=0) == "OK"
    transactions.await_state(committed, "COMMITTED")
    transactions.await_state(abandoned, "ABORTED")
    assert transactions.ping(sealed, LONG_MS) == "OK"
    assert gateway.seal(SCOPE, "st") == "SUCCESS"


def scale(gateway: Controller) -> None:
    """By Spark's decision on a report of a segment store."""
    policy = pb.ScalingPolicy(
        scaleType=pb.ScalingPolicy.BY_RATE_IN_EVENTS_PER_SEC, targetRate=10, scaleFactor=2, minNumSegments=1
    )
    retention = pb.RetentionPolicy(retentionType=pb.RetentionPolicy.SIZE, retentionParam=0, retentionMax=2**63 - 1)
    stream = pb.StreamConfig(streamInfo=info(SCOPE, "hot"), scalingPolicy=policy, retentionPolicy=retention)
    assert gateway.status("createStream", stream) == "SUCCESS"
    now = time.time_ns() // 1_000_000
    report_load(gateway, auto_scale_event(SCOPE, "hot", at=now))
    eventually(lambda: len(gateway.segments(SCOPE, "hot")) == 2, SOON_S, "it is scaled")


def replay_dead_letters(guarded: System, rest: httpx.Client) -> None:
    for topic in REPLAYABLE:
        produce(guarded.kafka_bootstrap, topic.name, "key", b"no record", partition=0)

    def open_letters() -> dict[str, Mapping[str, Any]]:
        found = rest.get("/dead-letters").raise_for_status().json()["items"]
        return {letter["topic"]: letter for letter in found}

    wanted = {topic.name for topic in REPLAYABLE}
    letters = eventually(lambda: (found := open_letters()).keys() == wanted and found, SOON_S, "all are given up")
    assert letters
    for letter in letters.values():
        rest.post(f"/dead-letters/{letter['partition']}/{letter['offset']}/replay").raise_for_status()


def first_of(rest: httpx.Client, aggregate: str) -> str | None:
    """The type of the aggregate's first event; None while the search goes on."""
    answer = rest.get("/journal", params={"key": aggregate})
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return None
    items = answer.raise_for_status().json()["items"]
    return items[-1]["type"] if items else None


def test_the_services_work_with_their_rights_and_use_each(
    guarded: System, kafka: GuardedKafka, gateway: Controller, rest: httpx.Client
) -> None:
    assert gateway.create_scope(SCOPE) == "SUCCESS"
    do_transactions(gateway)
    scale(gateway)
    replay_dead_letters(guarded, rest)
    statistics = f"/scopes/{SCOPE}/streams/st/statistics"
    eventually(lambda: rest.get(statistics, params={"window": "day"}).json()["items"], SOON_S, "it is counted")
    assert rest.get("/partitions").raise_for_status().json()["items"]
    # A request that is not there is searched for in all topics.
    eventually(
        lambda: rest.get("/requests/0123456789-1").raise_for_status().json()["complete"],
        SOON_S,
        "all topics are searched",
    )

    number = 0

    def is_trimmed() -> bool:
        """A snapshot is due behind new records only, and old ones go with the third."""
        nonlocal number
        number += 1
        assert gateway.create_scope(f"{SCOPE}-{number}") == "SUCCESS"
        return all(begin(guarded, topic.name) > 0 for topic in (JOURNAL, SNAPSHOTS))

    eventually(is_trimmed, SOON_S, "journal and snapshots are trimmed")
    for name in (GATEWAY, CONSOLE, "stream-workflows-0", "txn-manager-0"):
        # From a snapshot, this time.
        guarded.restart(name)
    assert gateway.create_scope(SCOPE) == "SCOPE_EXISTS"
    # What is trimmed by now comes from the archive.
    eventually(
        lambda: first_of(rest, f"scope:{SCOPE}") == "ScopeCreated", SOON_S, "the journal is known from its start"
    )
    wanted = {
        Used(service, right.operation, right.kind, right.name, right.is_prefix)
        for service, granted in RIGHTS.items()
        if service not in ("keda", "operator")
        for right in granted
    }
    assert wanted - kafka.used() == set()
    of_makers = {(user, "Create") for user in RIGHTS}
    assert {refused for refused in kafka.denied() if refused[:2] not in of_makers} == set()


def test_operators_see_in_the_console_what_clients_did_at_the_gateway(
    guarded: System, gateway: Controller, rest: httpx.Client
) -> None:
    assert gateway.create_scope("shop") == gateway.create_stream("shop", "carts") == "SUCCESS"
    assert rest.get("/scopes/shop/streams/carts").status_code == httpx.codes.OK
    # The past is read by a process of the console's.
    eventually(lambda: rest.get("/scopes/shop?at=-0s").status_code == httpx.codes.OK, SOON_S, "it is looked up")
    sealed = rest.post("/scopes/shop/streams/carts/seal")
    assert sealed.status_code == httpx.codes.OK, sealed.text

    def status(path: str, of: int) -> int:
        return httpx.get(f"{guarded.rest_urls[of]}{path}", timeout=60, trust_env=False).status_code

    assert status("/v1/scopes/shop", 0) == httpx.codes.OK
    assert status("/sluice/v1/scopes", 0) == status("/v1/scopes", 1) == httpx.codes.NOT_FOUND


def test_no_client_is_sent_to_the_console(guarded: System, gateway: Controller, rest: httpx.Client) -> None:
    address, console = guarded.grpc_addresses

    def members() -> dict[str, tuple[str, list[str]]]:
        found = rest.get("/members").json()["items"]
        return {one["instance"]: (one["service"], sorted(one["endpoints"])) for one in found}

    wanted = {GATEWAY: ("api-gateway", ["grpc", "rest"]), CONSOLE: ("console", ["rest"])}
    eventually(lambda: wanted.items() <= members().items(), SOON_S, "both are members")
    listed = gateway.call("getControllerServerList", pb.ServerRequest()).nodeURI
    assert [f"{one.endpoint}:{one.port}" for one in listed] == [address]
    with socket.socket() as client_socket:
        assert client_socket.connect_ex(host_and_port(console)) != 0, "it listens for gRPC"


@pytest.mark.parametrize(
    ("line", "shown"),
    [("topic tail journal --from -10m --no-follow", "ScopeCreated"), ("topic list", JOURNAL.name)],
)
def test_the_command_line_reads_topics_as_operator(kafka: GuardedKafka, line: str, shown: str) -> None:
    result = CliRunner().invoke(app, line.split(), env=dict(kafka.environment("operator")))
    assert result.exit_code == 0 and shown in result.stdout, result.stderr


def test_members_of_groups_say_which_session_they_got(guarded: System, kafka: GuardedKafka) -> None:
    def joined() -> list[str]:
        lines = guarded.log("stream-workflows-0").read_text().splitlines()
        return [line for line in lines if '"message":"joined"' in line]

    eventually(joined, SOON_S, "it has joined")
    assert {json.loads(line)["session_s"] for line in joined()} == {6.0}


def test_faust_reads_and_writes(guarded: System, kafka: GuardedKafka) -> None:
    eventually(lambda: read(guarded.kafka_bootstrap, STATISTICS_WINDOWS.name), SOON_S, "marks are in the table")


def test_no_log_and_no_command_line_shows_a_password(guarded: System, kafka: GuardedKafka) -> None:
    services = [name for name in guarded.names if name.rpartition("-")[0] in RIGHTS]
    assert len(services) == 6 and shows_password(guarded, services) == []


def test_an_autoscaler_sees_what_waits(kafka: GuardedKafka) -> None:
    given = kafka.environment("keda")
    admin = AdminClient(
        clients.admin({**read_conf(given["SLUICE_KAFKA_CONF"]), "bootstrap.servers": given["SLUICE_KAFKA_BOOTSTRAP"]})
    )
    for group, topic in (
        ("stream-workflows", "sluice.requests.streams"),
        ("txn-manager-sluice.commit", "sluice.commit"),
    ):
        wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, p) for p in range(PARTITIONS)])
        found = admin.list_consumer_group_offsets([wanted])[group].result(SOON_S)
        assert [each.error for each in found.topic_partitions] == [None] * PARTITIONS
    assert {topic.name for topic in TOPICS} <= admin.list_topics(timeout=SOON_S).topics.keys()


def test_a_right_that_is_taken_away_is_missed(kafka: GuardedKafka, gateway: Controller) -> None:
    (right,) = [r for r in RIGHTS["api-gateway"] if (r.operation, r.name) == (Operation.WRITE, ABORT.name)]
    assert gateway.create_stream(SCOPE, "kept") == "SUCCESS"
    transactions = Transactions(gateway, SCOPE, "kept")
    id = transactions.open()
    kafka.revoke("api-gateway", right)
    # The broker knows a moment later than it answers.
    eventually(lambda: transactions.abort(transactions.open()) != "SUCCESS", SOON_S, "the right is gone")
    eventually(lambda: _refused(right) in kafka.denied(), SOON_S, "the broker says so")
    kafka.grant("api-gateway", [right])
    eventually(lambda: transactions.abort(id) == "SUCCESS", SOON_S, "it is aborted")


def _refused(right: Right) -> tuple[str, str, str]:
    return "api-gateway", right.operation, right.name
