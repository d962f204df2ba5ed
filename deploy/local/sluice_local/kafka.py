"""The embedded Kafka: one process that is broker and controller, with everything on disk.

Its settings are those of a small, durable cluster of one: nothing is created by accident, groups notice a dead member
within about a second, and a broker that was killed is back in its cluster as fast.
"""

import base64
import subprocess
import uuid
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from sluice_local import java, security
from sluice_local.errors import PartFailed
from sluice_local.home import HOST
from sluice_local.part import Part, StopRank
from sluice_local.ports import PortClaim
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings

NAME = "kafka"
_FORMAT_LIMIT_S = 60.0

_LOG4J = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss.SSS} %-5p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
"""


def part(settings: LocalSettings) -> Part:
    """Describe the embedded broker."""
    folder = settings.data_dir / NAME
    config = folder / "server.properties"
    log4j = folder / "log4j2.properties"
    jars, archive = settings.jars_dir / "kafka", java.archive(settings.jars_dir, NAME)
    # What calls leave dies young: a small young generation stands still seven times as often.
    heap = ("-Xms384m", "-Xmx384m", "-Xmn256m")
    options = (*heap, f"-Dlog4j2.configurationFile={log4j}", *security.kafka_options(settings))
    first_user = security.kafka_format_arguments(settings)
    return Part(
        name=NAME,
        command=java.command(jars, "kafka.Kafka", [str(config)], options, archive),
        folder=folder,
        log=settings.logs_dir / f"{NAME}.log",
        address=settings.kafka_address,
        claims=(
            PortClaim(settings.kafka_port, NAME, "SLUICE_KAFKA_PORT"),
            PortClaim(settings.kafka_controller_port, NAME, "SLUICE_KAFKA_CONTROLLER_PORT"),
        ),
        probe=Probe(ProbeKind.KAFKA, settings.kafka_port, credentials=security.kafka_client(settings)),
        stop_rank=StopRank.STORE,
        files={config: java.properties(server_properties(settings)), log4j: _LOG4J},
        prepare=partial(format_once, jars, archive, config, folder / "log", new_cluster_id, first_user),
    )


def server_properties(settings: LocalSettings) -> dict[str, str | int | bool]:
    """Return the broker's settings."""
    broker, controller = f"{HOST}:{settings.kafka_port}", f"{HOST}:{settings.kafka_controller_port}"
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        # There is no other voter: waiting for others after a restart would be in vain.
        "controller.quorum.election.timeout.ms": 100,
        "controller.quorum.election.backoff.max.ms": 100,
        "controller.quorum.fetch.timeout.ms": 200,
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(settings.data_dir / NAME / "log"),
        "auto.create.topics.enable": False,
        "num.partitions": settings.partitions,
        # Topics are declared with their own retention; what is not declared is kept.
        "log.retention.ms": -1,
        "message.max.bytes": 8_388_608,
        "replica.fetch.max.bytes": 8_388_608,
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.num.partitions": 4,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        # Take-over after kill -9 is as long as the shortest session a member may ask for.
        "group.min.session.timeout.ms": 1_000,
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.min.session.timeout.ms": 1_000,
        "group.consumer.session.timeout.ms": 1_500,
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.heartbeat.interval.ms": 300,
        # A heartbeat that is not dealt with in half its interval is given up; on a busy machine that may never come to
        # an end if it is short. A broker that was killed itself is back when its old session has ended.
        "broker.heartbeat.interval.ms": 1_000,
        "broker.session.timeout.ms": 9_000,
        # Records that say nothing, twice a second by default: for other voters and observers, and there are none.
        "metadata.max.idle.interval.ms": 10_000,
        "log.cleaner.dedupe.buffer.size": 16_777_216,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
        **security.kafka_properties(settings),
    }


def new_cluster_id() -> str:
    """Draw an id that no other cluster has."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")


def format_once(
    jars: Path,
    archive: Path,
    config: Path,
    log_folder: Path,
    cluster_id: Callable[[], str],
    first_user: Iterable[str] = (),
) -> None:
    """Give the data folder its cluster's id, if it has none."""
    if (log_folder / "meta.properties").exists():
        return
    # With an equals sign, because an id may begin with a dash.
    arguments = ("format", f"--cluster-id={cluster_id()}", f"--config={config}", *first_user)
    command = java.command(jars, "kafka.tools.StorageTool", arguments, java.SHORT_LIVED, archive)
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_FORMAT_LIMIT_S, check=False, cwd=config.parent
    )
    if done.returncode != 0:
        raise PartFailed(f"{NAME}: its folder {log_folder} could not be formatted:\n{done.stdout}{done.stderr}")
