"""Pravega's own controller as a process on a data plane that is already there.

Its jars are fetched on demand. It runs with the Java runtime's own choice of collector and compiler, so that it is not
slowed down; memory as Pravega's own scripts of a small installation give it. Used from one thread.
"""

import os
import secrets
import threading
import time
from collections.abc import Mapping
from types import MappingProxyType, TracebackType
from typing import Self

import grpc

from bench import secured
from sluice.controller_api import controller_pb2 as pb
from sluice.security.folder import File
from sluice_local import jars, java
from sluice_local.errors import PartFailed
from sluice_local.home import HOST
from sluice_local.process import Child, Spawner, log_tail
from sluice_local.settings import LocalSettings

_READY_LIMIT_S = 180.0
_STOP_LIMIT_S = 10.0
_ASK_AGAIN_S = 0.1


class PeerController:
    """The controller on the ZooKeeper and the gRPC port of a local system whose own services do not run.

    `more` are settings of it beside the usual ones.
    """

    def __init__(self, settings: LocalSettings, more: Mapping[str, str | int | bool] = MappingProxyType({})) -> None:
        self.address = f"{HOST}:{settings.grpc_port}"
        self.log = settings.logs_dir / "peer.log"
        self._settings = settings
        self._more = more
        self._folder = settings.data_dir / "peer"
        self._spawner = Spawner()
        self._child: Child | None = None

    def start(self) -> float:
        """Start it and return the seconds until it has created a scope. Raises PartFailed."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self._folder / "controller.properties").write_text(java.properties(self._properties()))
        (self._folder / "logback.xml").write_text(java.logback())
        began = time.monotonic()
        self._child = self._spawner.spawn(self._command(), dict(os.environ), self._folder, self.log)
        self._until_serving(self._child, began + _READY_LIMIT_S)
        return time.monotonic() - began

    @property
    def pid(self) -> int:
        """Of the process that was started. Raises PartFailed."""
        if self._child is None:
            raise PartFailed("Pravega's controller was never started")
        return self._child.pid

    def kill(self) -> None:
        """End it at once, in the middle of whatever it does."""
        if self._child is not None:
            self._child.kill()

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(_STOP_LIMIT_S)
        self._spawner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _command(self) -> tuple[str, ...]:
        properties = {
            "conf.file": self._folder / "controller.properties",
            "logback.configurationFile": self._folder / "logback.xml",
        }
        options = [f"-D{name}={value}" for name, value in properties.items()]
        classes = f"{self._settings.jars_dir / jars.PEER}/*"
        return (java.executable(), "-Xmx1g", *options, "-cp", classes, "io.pravega.controller.server.Main")

    def _properties(self) -> dict[str, str | int | bool]:
        settings = self._settings
        return {
            "controller.zk.connect.uri": settings.zookeeper_address,
            "controller.container.count": settings.container_count,
            "controller.service.cluster.name": settings.cluster_name,
            "controller.service.rpc.listener.port": settings.grpc_port,
            "controller.service.rpc.published.host.nameOrIp": HOST,
            "controller.service.rest.listener.port": settings.rest_port,
            **_security(settings),
            **self._more,
        }

    def _until_serving(self, child: Child, end: float) -> None:
        while (reason := first_scope(self.address)) is not None:
            if child.wait(_ASK_AGAIN_S):
                raise PartFailed(f"Pravega's controller ended; log {self.log}, its last lines:\n{log_tail(self.log)}")
            if time.monotonic() > end:
                raise PartFailed(f"Pravega's controller is not ready after {_READY_LIMIT_S:g} s: {reason}")


def _security(settings: LocalSettings) -> dict[str, str | int | bool]:
    """The same certificate, users and signing key as ours; see security 6.5."""
    if not settings.secure:
        return {}
    folder = settings.security_dir
    tls, zookeeper = "controller.security.tls", "controller.zk.connect.security"
    return {
        "controller.security.auth.enable": True,
        "controller.security.pwdAuthHandler.accountsDb.location": str(folder / File.ACCOUNTS),
        "controller.security.auth.delegationToken.signingKey.basis": (folder / File.TOKEN_KEY).read_text(),
        f"{tls}.enable": True,
        f"{tls}.server.certificate.location": str(folder / File.CERTIFICATE),
        f"{tls}.server.privateKey.location": str(folder / File.KEY),
        f"{tls}.server.keyStore.location": str(folder / File.KEY_STORE),
        f"{tls}.server.keyStore.pwd.location": str(folder / File.KEY_STORE_PASSWORD),
        f"{tls}.trustStore.location": str(folder / File.AUTHORITY),
        f"{zookeeper}.enable": True,
        f"{zookeeper}.tls.trustStore.location": str(folder / File.TRUST_STORE),
        f"{zookeeper}.tls.trustStore.pwd.location": str(folder / File.TRUST_STORE_PASSWORD),
    }


def first_scope(address: str) -> str | None:
    """None if a controller creates a scope, else why it does not."""
    with secured.channel(address) as channel:
        request = pb.ScopeInfo(scope=f"ready{secrets.token_hex(4)}")
        try:
            status = secured.stub(channel).createScope(request, timeout=5.0).status
        except grpc.RpcError as error:
            return str(error)
    return None if status == pb.CreateScopeStatus.SUCCESS else pb.CreateScopeStatus.Status.Name(status)


def until_scope(address: str, limit_s: float = 60.0) -> None:
    """Return when a controller has created a scope. Raises PartFailed."""
    end, pause = time.monotonic() + limit_s, threading.Event()
    while (reason := first_scope(address)) is not None:
        if time.monotonic() > end:
            raise PartFailed(f"the controller at {address} creates no scope: {reason}")
        pause.wait(0.02)
