"""The embedded bookie: one durable BookKeeper server, the log of all segment stores.

Before its first start it needs the cluster's nodes in ZooKeeper. They are made only if they are missing, and what a
bookie that was killed left of itself is removed, so that it simply starts again. The bookie has a name of its own
instead of its address: its data stays usable when the port changes.
"""

import uuid
from contextlib import suppress
from functools import partial

from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError

from sluice_local import java, security
from sluice_local.errors import PartFailed
from sluice_local.home import HOST
from sluice_local.part import Part, StopRank
from sluice_local.ports import PortClaim
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings

NAME = "bookie"
_LIMIT_S = 60.0
_MEMORY = ("-Xmx256m", "-XX:MaxDirectMemorySize=256m")
_LAYOUT = b"2\norg.apache.bookkeeper.meta.HierarchicalLedgerManagerFactory:1"
"""The version of the format, and how ledgers are laid out below: BookKeeper's default."""


def part(settings: LocalSettings, starts_after: tuple[str, ...]) -> Part:
    """Describe the embedded bookie."""
    folder = settings.data_dir / NAME
    config = folder / "bookkeeper.conf"
    logback = folder / "logback.xml"
    # Allocates its journal in one go, for which it reaches into a file descriptor.
    reach_in = "--add-opens=java.base/java.io=ALL-UNNAMED"
    memory = ("-Xmx128m", "-XX:MaxDirectMemorySize=96m") if settings.is_small else _MEMORY
    options = (
        *memory,
        reach_in,
        f"-Dlogback.configurationFile={logback}",
        *security.zookeeper_client_options(settings),
    )
    return Part(
        name=NAME,
        command=java.command(
            settings.jars_dir / "data-plane",
            "org.apache.bookkeeper.server.Main",
            ["--conf", str(config)],
            options,
            java.archive(settings.jars_dir, NAME),
        ),
        folder=folder,
        log=settings.logs_dir / f"{NAME}.log",
        address=f"{HOST}:{settings.bookie_port}",
        claims=(PortClaim(settings.bookie_port, NAME, "SLUICE_BOOKIE_PORT"),),
        probe=Probe(ProbeKind.TCP, settings.bookie_port),
        stop_rank=StopRank.BOOKIE,
        starts_after=starts_after,
        files={config: java.properties(bookkeeper_conf(settings)), logback: java.logback()},
        prepare=partial(make_nodes, settings),
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
        # What is not yet in a ledger's file; there are two of that size in the heap.
        **({"skipListSizeLimit": 16 * 2**20} if settings.is_small else {}),
        # A bookie that loses its session ends, and on a busy machine its connection alone may take seconds.
        "zkTimeout": 10_000,
        "httpServerEnabled": False,
        "numAddWorkerThreads": 1,
        "numReadWorkerThreads": 2,
        "diskUsageThreshold": "0.99",
        "diskUsageWarnThreshold": "0.98",
    }


def make_nodes(settings: LocalSettings) -> None:
    """Make BookKeeper's nodes in ZooKeeper, if they are missing; all of them at once.

    What a bookie before left of itself goes: none runs now, and this one would wait for the end of that one's session.

    The nodes are those of `bookkeeper shell initnewcluster` (ZKRegistrationManager.initNewCluster of BookKeeper 4.14),
    which would be a Java program more on the way to every first start.
    """
    authority = security.zookeeper_authority(settings)
    tls = {"use_ssl": True, "ca": authority, "check_hostname": True} if authority else {}
    client = KazooClient(hosts=settings.zookeeper_address, timeout=_LIMIT_S, **tls)
    client.start(timeout=_LIMIT_S)
    try:
        root = root_node(settings)
        client.ensure_path(root)
        if client.exists(f"{root}/ledgers/INSTANCEID") is None:
            _init_cluster(client, f"{root}/ledgers")
        with suppress(NoNodeError):
            client.delete(f"{root}/ledgers/available/{NAME}")
    finally:
        client.stop()
        client.close()


def _init_cluster(client: KazooClient, ledgers: str) -> None:
    nodes = {
        ledgers: b"",
        f"{ledgers}/available": b"",
        f"{ledgers}/available/readonly": b"",
        f"{ledgers}/INSTANCEID": str(uuid.uuid4()).encode(),
        f"{ledgers}/LAYOUT": _LAYOUT,
    }
    transaction = client.transaction()
    for path, value in nodes.items():
        transaction.create(path, value)
    for path, outcome in zip(nodes, transaction.commit(), strict=True):
        if isinstance(outcome, Exception):
            raise PartFailed(f"{NAME}: {path} could not be made in ZooKeeper: {type(outcome).__name__}")
