"""The embedded Kafka: processes that are broker and controller, with everything on disk; one, or a cluster of some.

Nothing is created by accident, and groups notice a dead member within about a second. One that was killed is back as
fast. In a cluster each topic is on up to three brokers, and all but one of them must have a record.
"""

import base64
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
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
_CLUSTER_ID = "kafka-cluster-id"
_FORMAT_LIMIT_S = 60.0

_ALONE: dict[str, str | int | bool] = {
    # There is no other voter: waiting for others after a restart would be in vain.
    "controller.quorum.election.timeout.ms": 100,
    "controller.quorum.election.backoff.max.ms": 100,
    "controller.quorum.fetch.timeout.ms": 200,
}
_DRAWING = threading.Lock()

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


def parts(settings: LocalSettings) -> Iterator[Part]:
    """Describe the embedded brokers."""
    yield from (_part(settings, node) for node in _nodes(settings))


def _nodes(settings: LocalSettings) -> range:
    return range(1, settings.kafka_brokers + 1)


def _name(node: int) -> str:
    return NAME if node == 1 else f"{NAME}-{node}"


def _part(settings: LocalSettings, node: int) -> Part:
    name, apart = _name(node), 2 * (node - 1)
    port, controller_port = settings.kafka_ports[node - 1], settings.kafka_controller_port + apart
    folder = settings.data_dir / name
    config = folder / "server.properties"
    log4j = folder / "log4j2.properties"
    jars, archive = settings.jars_dir / "kafka", java.archive(settings.jars_dir, NAME)
    # What calls leave dies young: a small young generation stands still seven times as often.
    heap = ("-Xms160m", "-Xmx160m", "-Xmn64m") if settings.is_small else ("-Xms384m", "-Xmx384m", "-Xmn256m")
    options = (*heap, f"-Dlog4j2.configurationFile={log4j}", *security.kafka_options(settings))
    first_user = security.kafka_format_arguments(settings)
    cluster = partial(cluster_id, settings.data_dir / _CLUSTER_ID)
    return Part(
        name=name,
        command=java.command(jars, "kafka.Kafka", [str(config)], options, archive),
        folder=folder,
        log=settings.logs_dir / f"{name}.log",
        address=f"{HOST}:{port}",
        claims=(
            PortClaim(port, name, f"SLUICE_KAFKA_PORT (plus {apart})"),
            PortClaim(controller_port, name, f"SLUICE_KAFKA_CONTROLLER_PORT (plus {apart})"),
        ),
        probe=Probe(ProbeKind.KAFKA, port, credentials=security.kafka_client(settings)),
        stop_rank=StopRank.STORE,
        files={config: java.properties(server_properties(settings, node)), log4j: _LOG4J},
        prepare=partial(format_once, jars, archive, config, folder / "log", cluster, first_user),
    )


def server_properties(settings: LocalSettings, node: int = 1) -> dict[str, str | int | bool]:
    """Return a broker's settings."""
    nodes, port = _nodes(settings), settings.kafka_controller_port
    broker, controllers = f"{HOST}:{settings.kafka_ports[node - 1]}", {n: f"{HOST}:{port + 2 * n - 2}" for n in nodes}
    controller, replicas = controllers[node], settings.kafka_replicas
    least = max(1, replicas - 1)
    return {
        "process.roles": "broker,controller",
        "node.id": node,
        "controller.quorum.voters": ",".join(f"{n}@{address}" for n, address in controllers.items()),
        **(_ALONE if len(nodes) == 1 else {}),
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listeners": f"PLAINTEXT://{broker},CONTROLLER://{controller}",
        "advertised.listeners": f"PLAINTEXT://{broker}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(settings.data_dir / _name(node) / "log"),
        "auto.create.topics.enable": False,
        "num.partitions": settings.partitions,
        # Topics are declared with their own retention; what is not declared is kept.
        "log.retention.ms": -1,
        "message.max.bytes": 8_388_608,
        "replica.fetch.max.bytes": 8_388_608,
        "default.replication.factor": replicas,
        "min.insync.replicas": least,
        "offsets.topic.num.partitions": 4,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": 4,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": least,
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": least,
        # Take-over after kill -9 is as long as the shortest session a member may ask for.
        "group.min.session.timeout.ms": 1_000,
        "group.initial.rebalance.delay.ms": 0,
        "group.consumer.min.session.timeout.ms": 1_000,
        "group.consumer.session.timeout.ms": 1_500,
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.heartbeat.interval.ms": 300,
        # A heartbeat that is not dealt with in half its interval is given up; on a busy machine that may never come to
        # an end if it is short. What a broker leads that is gone has another leader when its session has ended.
        "broker.heartbeat.interval.ms": 1_000,
        "broker.session.timeout.ms": 9_000 if len(nodes) == 1 else 3_000,
        # Records that say nothing, twice a second by default: for other voters and observers, and there are none.
        "metadata.max.idle.interval.ms": 10_000,
        "log.cleaner.dedupe.buffer.size": 16_777_216,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
        **security.kafka_properties(settings, broker, controller),
    }


def cluster_id(file: Path) -> str:
    """The id of the cluster, which no other one has; it is drawn for the broker that is formatted first."""
    with _DRAWING:
        if not file.exists():
            file.write_text(base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("="))
        return file.read_text()


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
