"""The embedded ZooKeeper: one durable server. Segment stores and bookies register there."""

from sluice_local import java, security
from sluice_local.home import HOST
from sluice_local.part import Part, StopRank
from sluice_local.ports import PortClaim
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings

NAME = "zookeeper"


def part(settings: LocalSettings) -> Part:
    """Describe the embedded server."""
    folder = settings.data_dir / NAME
    config = folder / "zoo.cfg"
    logback = folder / "logback.xml"
    options = (
        "-Xmx64m" if settings.is_small else "-Xmx128m",
        *java.SHORT_LIVED,
        f"-Dlogback.configurationFile={logback}",
        "-Dzookeeper.jmx.log4j.disable=true",
    )
    return Part(
        name=NAME,
        command=java.command(
            settings.jars_dir / "data-plane",
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            [str(config)],
            options,
            java.archive(settings.jars_dir, NAME),
        ),
        folder=folder,
        log=settings.logs_dir / f"{NAME}.log",
        address=settings.zookeeper_address,
        claims=(PortClaim(settings.zookeeper_port, NAME, "SLUICE_ZOOKEEPER_PORT"),),
        probe=Probe(ProbeKind.ZOOKEEPER, settings.zookeeper_port, security.authority(settings)),
        stop_rank=StopRank.STORE,
        files={config: java.properties(zoo_cfg(settings)), logback: java.logback()},
    )


def zoo_cfg(settings: LocalSettings) -> dict[str, str | int | bool]:
    """Return the server's settings. A tick is half a second, so that a session may be as short as one second."""
    return {
        "tickTime": 500,
        "minSessionTimeout": 1_000,
        "maxSessionTimeout": 40_000,
        "initLimit": 10,
        "syncLimit": 5,
        "dataDir": str(settings.data_dir / NAME / "data"),
        **(security.zoo_cfg(settings) or {"clientPort": settings.zookeeper_port, "clientPortAddress": HOST}),
        "maxClientCnxns": 0,
        "admin.enableServer": False,
        "autopurge.snapRetainCount": 3,
        "autopurge.purgeInterval": 1,
    }
