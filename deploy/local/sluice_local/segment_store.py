"""The embedded segment stores: unmodified Pravega, durable on the bookie and on a folder they share.

A segment store is ready when its port is open. It serves segments only once cluster-manager has assigned them, through
ZooKeeper, which containers are its own.
"""

from dataclasses import dataclass
from typing import Self

from sluice.addresses import EVERYWHERE, LOOPBACK
from sluice_local import java, security
from sluice_local.home import HOST
from sluice_local.part import Part, StopRank
from sluice_local.ports import PortClaim
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import CACHE_SIZE, LocalSettings

KIND = "segment-store"


@dataclass(frozen=True, slots=True)
class Memory:
    """How a segment store's memory is divided.

    The program insists that the cache fits into the direct memory. The rest of that are the buffers of the network and
    of BookKeeper: appends under way, and what a container that recovers reads; without room for them it does not.
    """

    heap_mib: int
    direct_mib: int
    cache_mib: int

    @classmethod
    def of(cls, settings: LocalSettings) -> Self:
        """Return the division of the memory that the settings give."""
        total = settings.store_memory_mib
        return cls(heap_mib=total // 2, direct_mib=total // 2, cache_mib=total // 4)


def part(settings: LocalSettings, index: int, starts_after: tuple[str, ...]) -> Part:
    """Describe one embedded segment store; its data folder holds nothing but settings."""
    name = f"{KIND}-{index}"
    port = settings.segment_store_port + index
    folder = settings.data_dir / name
    config = folder / "segment-store.properties"
    logback = folder / "logback.xml"
    memory = Memory.of(settings)
    options = (
        f"-Xmx{memory.heap_mib}m",
        f"-XX:MaxDirectMemorySize={memory.direct_mib}m",
        f"-Dpravega.configurationFile={config}",
        f"-Dlogback.configurationFile={logback}",
        *security.store_options(settings),
    )
    return Part(
        name=name,
        command=java.command(
            settings.jars_dir / "data-plane",
            "io.pravega.segmentstore.server.host.ServiceStarter",
            (),
            options,
            java.archive(settings.jars_dir, KIND),
        ),
        folder=folder,
        log=settings.logs_dir / f"{name}.log",
        address=settings.published(port),
        claims=(PortClaim(port, name, f"SLUICE_SEGMENT_STORE_PORT (plus {index})"),),
        probe=Probe(ProbeKind.TCP, port, host=settings.grpc_published_host),
        stop_rank=StopRank.SEGMENT_STORE,
        starts_after=starts_after,
        files={
            config: java.properties(store_properties(settings, port)),
            logback: java.logback(quiet=security.store_loggers(settings)),
        },
    )


def store_properties(settings: LocalSettings, port: int) -> dict[str, str | int | bool]:
    """Return the settings of one segment store."""
    return {
        "pravegaservice.container.count": settings.container_count,
        "pravegaservice.clusterName": settings.cluster_name,
        "pravegaservice.service.listener.host.nameOrIp": _listener(settings),
        "pravegaservice.service.published.host.nameOrIp": settings.published_host,
        "pravegaservice.service.listener.port": port,
        "pravegaservice.zk.connect.uri": settings.zookeeper_address,
        # A store that stands still for longer, as on a machine under load, loses its containers for a while.
        "pravegaservice.zk.connect.sessionTimeout.milliseconds": 10_000,
        "pravegaservice.dataLog.impl.name": "BOOKKEEPER",
        "pravegaservice.storage.impl.name": "FILESYSTEM",
        "filesystem.root": str(settings.data_dir / "long-term-storage"),
        "bookkeeper.zk.connect.uri": settings.zookeeper_address,
        "bookkeeper.ensemble.size": 1,
        "bookkeeper.write.quorum.size": 1,
        "bookkeeper.ack.quorum.size": 1,
        CACHE_SIZE: Memory.of(settings).cache_mib * 2**20,
        "pravegaservice.threadPool.core.size": 8,
        "pravegaservice.threadPool.storage.size": 20,
        "pravegaservice.rest.listener.enable": False,
        "autoScale.controller.connect.uri": f"tcp://{settings.published(settings.grpc_port)}",
        **security.store_properties(settings),
        **settings.segment_store_options,
    }


def _listener(settings: LocalSettings) -> str:
    """Where the services listen, if clients are told so; else where only this machine reaches it."""
    if not settings.grpc_published_host or settings.host == LOOPBACK:
        return HOST
    return "0.0.0.0" if settings.host == EVERYWHERE else settings.host
