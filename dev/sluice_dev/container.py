"""For Testcontainers: `sluice dev` from its image, for tests that should not run it in their own environment."""

import random
import socket
from contextlib import ExitStack, suppress
from importlib.metadata import version

from testcontainers.core.container import DockerContainer
from testcontainers.core.wait_strategies import LogMessageWaitStrategy

READY_S = 60
PUBLISHED = "127.0.0.1"
FREE = range(14_000, 20_000)
"""Outgoing connections draw higher ports, so none takes one of these before the container listens there."""


class SluiceDevContainer(DockerContainer):
    """A Pravega in a container: `controller` is where clients find it.

    Ports are the same inside and outside, for clients learn from the controller where the segment store is. So the
    engine has to run on this machine. `options` are those of the command line of `sluice dev`.
    """

    def __init__(self, *options: str, image: str | None = None) -> None:
        super().__init__(image or f"sluice/dev:{version('sluice-streams-dev')}")
        grpc, rest, store = _free_ports(3)
        self.controller = f"{PUBLISHED}:{grpc}"
        self.rest = f"{'https' if '--secure' in options else 'http'}://{PUBLISHED}:{rest}"
        for port in (grpc, rest, store):
            self.with_bind_ports(port, port)
        ports = {"--grpc-port": grpc, "--rest-port": rest, "--store-port": store}
        self.with_command([*(str(word) for pair in ports.items() for word in pair), *options])
        self.waiting_for(LogMessageWaitStrategy('"controller"').with_startup_timeout(READY_S))


def _free_ports(many: int) -> list[int]:
    """Ports on which nothing listens now."""
    found: list[int] = []
    with ExitStack() as held:
        for port in random.sample(FREE, len(FREE)):
            if len(found) == many:
                break
            with suppress(OSError):
                held.enter_context(socket.create_server((PUBLISHED, port)))
                found.append(port)
    return found
