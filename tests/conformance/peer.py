"""Pravega's own controller: all of Pravega in one process, in memory, on ports of its own.

Ends with the test runner, even if that is killed. Blocking.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self
from uuid import uuid4

import grpc
from support.ports import free_ports

from harness import eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice_local import jars, java
from sluice_local.home import HOST
from sluice_local.process import Spawner, log_tail

_READY_S = 90.0
_OPTIONS = ("-XX:+UseSerialGC", "-Xmx768m", "-XX:MaxDirectMemorySize=512m", "-Djava.net.preferIPv4Stack=true")
_TOO_OLD = (
    "jersey-*1.19*.jar",
    "jsr311*.jar",
    "jersey-container-servlet-core-2.25*.jar",
    "smart-client-jersey*.jar",
    "jaxb-impl-2.2*.jar",
    "bc-fips*.jar",
)
_MAIN = "io.pravega.local.LocalPravegaEmulator"


class Peer:
    """As a context it is up inside and gone after.

    `more` are settings beside the usual ones; `authorization` is what a caller sends who may do everything; `options`
    are of the Java runtime.
    """

    def __init__(
        self,
        jars_dir: Path,
        folder: Path,
        more: Mapping[str, object] = MappingProxyType({}),
        authorization: str = "",
        options: Sequence[str] = _OPTIONS,
    ) -> None:
        self._folder = folder
        self._metadata = (("authorization", authorization),) if authorization else ()
        self._log = folder / "peer.log"
        zookeeper, controller, store, rest, admin = free_ports(5)
        self.address = f"{HOST}:{controller}"
        self.rest_url = f"http://{HOST}:{rest}"
        settings = {
            "configurationFile": folder / "standalone.properties",
            "zk.port": zookeeper,
            "controller.rpc.port": controller,
            "controller.rest.enable": "true",
            "controller.rest.port": rest,
            "segmentStore.port": store,
            "admin.gateway.enable": "false",
            "admin.gateway.port": admin,
            **more,
        }
        options = [*options, *(f"-Dsinglenode.{name}={value}" for name, value in settings.items())]
        # The REST server of its segment store has one port, also where another original runs.
        options.append("-Dpravegaservice.rest.listener.enable=false")
        options.append(f"-Dlogback.configurationFile={folder / 'logback.xml'}")
        self._command = (java.executable(), *options, "-cp", _classpath(jars_dir), _MAIN)
        self._spawner = Spawner()

    def begin(self) -> int:
        """Start it and do not wait for it; its process number. `close` ends it."""
        self._folder.mkdir(parents=True)
        (self._folder / "standalone.properties").touch()
        (self._folder / "logback.xml").write_text(java.logback())
        self._child = self._spawner.spawn(self._command, os.environ, self._folder, self._log)
        return self._child.pid

    def close(self) -> None:
        self._child.kill()
        self._spawner.close()

    def __enter__(self) -> Self:
        self.begin()
        try:
            with grpc.insecure_channel(self.address) as channel:
                stub, scope = ControllerServiceStub(channel), f"ready-{uuid4().hex[:8]}"
                eventually(lambda: self._is_ready(stub, scope), _READY_S, f"{_MAIN} is ready; see {self._log}")
        except BaseException:
            self.close()
            raise
        return self

    def _is_ready(self, stub: ControllerServiceStub, scope: str) -> bool:
        """Whether it works off requests: the last thing to come up are the streams it keeps them in."""
        if self._child.exit_code is not None:
            raise RuntimeError(f"the peer ended:\n{log_tail(self._log)}")
        stub.createScope(pb.ScopeInfo(scope=scope), timeout=5.0, metadata=self._metadata)
        table = pb.KeyValueTableConfig(scope=scope, kvtName="table", partitionCount=1, primaryKeyLength=8)
        return stub.createKeyValueTable(table, timeout=10.0, metadata=self._metadata).status in (
            pb.CreateKeyValueTableStatus.SUCCESS,
            pb.CreateKeyValueTableStatus.TABLE_EXISTS,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _classpath(jars_dir: Path) -> str:
    """The controller's own jars know nothing of the segment store, and those of the data plane nothing of it.

    Left out are older frameworks for HTTP and XML, which cannot cope with the classes of this Java.
    """
    found = [path for folder in (jars.PEER, "data-plane") for path in sorted((jars_dir / folder).glob("*.jar"))]
    return ":".join(str(path) for path in found if not any(path.match(pattern) for pattern in _TOO_OLD))
