"""A RabbitMQ of the tests' own, on free ports of the loopback; it comes with the system's packages."""

import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.ports import free_ports
from support.wait import eventually

HOST = "127.0.0.1"
SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""Not the one on the path: that one runs as the package's user alone."""
STARTS_S = 120.0


@contextmanager
def private_rabbitmq(folder: Path) -> Iterator[str]:
    """Run an empty one in a folder for the block; its URL."""
    assert SERVER.exists(), "RabbitMQ is missing: apt-get install rabbitmq-server"
    port, nodes_port, names_port = free_ports(3)
    (folder / "plugins").write_text("[].")
    environment = {
        **os.environ,
        "HOME": str(folder),
        "ERL_EPMD_ADDRESS": HOST,
        "ERL_EPMD_PORT": str(names_port),
        "RABBITMQ_CONF_ENV_FILE": os.devnull,
        "RABBITMQ_DIST_PORT": str(nodes_port),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_NODENAME": "tests@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_NODE_PORT": str(port),
    }
    with (folder / "output").open("wb") as output:
        # What the server would start by itself would outlive it.
        names = subprocess.Popen(["epmd", "-port", str(names_port), "-address", HOST], stdout=output, stderr=output)
        try:
            eventually(lambda: _listens(names_port), STARTS_S, "Erlang's names are served")
            server = subprocess.Popen([SERVER], env=environment, stdout=output, stderr=output)
            try:
                eventually(lambda: _listens(port), STARTS_S, "RabbitMQ listens")
                yield f"amqp://guest:guest@{HOST}:{port}/"
            finally:
                server.terminate()
                server.wait(STARTS_S)
        finally:
            names.terminate()
            names.wait(STARTS_S)


def _listens(port: int) -> bool:
    with socket.create_connection((HOST, port), timeout=1):
        return True
