"""The embedded bookie: one durable BookKeeper server, the log of all segment stores.

Before its first start it needs a parent node in ZooKeeper and the cluster's own nodes below it. Both are made only if
they are missing, so that a bookie that was killed simply starts again. The bookie has a name of its own instead of its
address: its data stays usable when the port changes.
"""

import subprocess
from functools import partial
from pathlib import Path

from kazoo.client import KazooClient

from sluice_local import java
from sluice_local.errors import PartFailed
from sluice_local.home import HOST
from sluice_local.part import Part, StopRank
from sluice_local.ports import PortClaim
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings

NAME = "bookie"
_LIMIT_S = 60.0


def part(settings: LocalSettings, starts_after: tuple[str, ...]) -> Part:
    """Describe the embedded bookie."""
    folder = settings.data_dir / NAME
    config = folder / "bookkeeper.conf"
    logback = folder / "logback.xml"
    jars = settings.jars_dir / "data-plane"
    log_option = f"-Dlogback.configurationFile={logback}"
    # Allocates its journal in one go, for which it reaches into a file descriptor.
    reach_in = "--add-opens=java.base/java.io=ALL-UNNAMED"
    options = ("-Xmx256m", "-XX:MaxDirectMemorySize=256m", reach_in, log_option)
    return Part(
        name=NAME,
        command=java.command(jars, "org.apache.bookkeeper.server.Main", ["--conf", str(config)], options),
        folder=folder,
        log=settings.logs_dir / f"{NAME}.log",
        address=f"{HOST}:{settings.bookie_port}",
        claims=(PortClaim(settings.bookie_port, NAME, "SLUICE_BOOKIE_PORT"),),
        probe=Probe(ProbeKind.TCP, settings.bookie_port),
        stop_rank=StopRank.BOOKIE,
        starts_after=starts_after,
        files={config: java.properties(bookkeeper_conf(settings)), logback: java.logback()},
        prepare=partial(init_cluster_once, settings, jars, config, log_option),
    )


def root_node(settings: LocalSettings) -> str:
    """Return the node in ZooKeeper that BookKeeper lives under; the segment stores expect it there."""
    return f"/pravega/{settings.cluster_name}/bookkeeper"


def bookkeeper_conf(settings: LocalSettings) -> dict[str, str | int | bool]:
    """Return the bookie's settings."""
    folder = settings.data_dir / NAME
    return {
        "metadataServiceUri": f"zk+null://{settings.zookeeper_address.replace(',', ';')}{root_node(settings)}/ledgers",
        "bookieId": NAME,
        "bookiePort": settings.bookie_port,
        "advertisedAddress": HOST,
        "listeningInterface": "lo",
        "allowLoopback": True,
        "journalDirectories": str(folder / "journal"),
        "ledgerDirectories": str(folder / "ledgers"),
        "journalSyncData": True,
        "journalMaxSizeMB": 256,
        "journalMaxBackups": 1,
        # A bookie that was killed waits for its old session to end before it takes its name again.
        "zkTimeout": 3_000,
        "httpServerEnabled": False,
        "numAddWorkerThreads": 1,
        "numReadWorkerThreads": 2,
        "diskUsageThreshold": "0.99",
        "diskUsageWarnThreshold": "0.98",
    }


def _zookeeper(settings: LocalSettings) -> KazooClient:
    return KazooClient(hosts=settings.zookeeper_address, timeout=_LIMIT_S)


def init_cluster_once(settings: LocalSettings, jars: Path, config: Path, log_option: str) -> None:
    """Make BookKeeper's nodes in ZooKeeper, if they are missing."""
    client = _zookeeper(settings)
    client.start(timeout=_LIMIT_S)
    try:
        root = root_node(settings)
        if client.exists(f"{root}/ledgers/INSTANCEID"):
            return
        client.ensure_path(root)
    finally:
        client.stop()
        client.close()
    options = (*java.SHORT_LIVED, log_option)
    command = java.command(
        jars, "org.apache.bookkeeper.bookie.BookieShell", ["-conf", str(config), "initnewcluster"], options
    )
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False, cwd=config.parent)
    if done.returncode != 0:
        raise PartFailed(f"{NAME}: the cluster could not be initialised:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
