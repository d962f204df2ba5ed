"""A ZooKeeper that wants TLS, a client certificate and a user: the cluster manager's client gets along with it."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from kazoo.client import KazooClient
from support.certificates import Authority
from support.ports import free_port

from cluster_manager.nodes import NodesError, ZooKeeperNodes
from cluster_manager.settings import ClusterManagerSettings
from harness import eventually_async
from sluice.security.watched import Watched
from sluice.zookeeper_access import ZooKeeperAccess
from sluice_local import java
from sluice_local.settings import LocalSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

DEADLINE_S = 60.0
REFUSED_S = 3.0
PASSWORD = "p4ss word"
_OPTIONS = {
    "zookeeper.serverCnxnFactory": "org.apache.zookeeper.server.NettyServerCnxnFactory",
    "zookeeper.authProvider.1": "org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
    "zookeeper.sessionRequireClientSASLAuth": "true",
    "zookeeper.admin.enableServer": "false",
}


@dataclass(frozen=True)
class Secured:
    """The server's port, and whom it trusts."""

    port: int
    authority: Authority
    password_file: Path

    def settings(self, host: str = "127.0.0.1", **more: object) -> ClusterManagerSettings:
        """What reaches it, but for what is given."""
        client = self.authority.issue("client")
        given = {
            "zookeeper": f"{host}:{self.port}",
            "zookeeper_tls": True,
            "zookeeper_tls_authorities": str(self.authority.file),
            "zookeeper_tls_certificate": str(client.certificate),
            "zookeeper_tls_key": str(client.key),
            "zookeeper_user": "sluice",
            "zookeeper_password_file": str(self.password_file),
        }
        return ClusterManagerSettings(**{**given, **more})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured-zookeeper")
    authority, port = Authority(folder), free_port()
    server = authority.issue("server", "IP:127.0.0.1")
    both = folder / "both.pem"
    both.write_bytes(server.key.read_bytes() + server.certificate.read_bytes())
    jaas = folder / "jaas.conf"
    login = "org.apache.zookeeper.server.auth.DigestLoginModule"
    jaas.write_text(f'Server {{ {login} required user_sluice="{PASSWORD}"; }};\n')
    config, logback = folder / "zoo.cfg", folder / "logback.xml"
    logback.write_text(java.logback())
    stores = {
        "ssl.keyStore.location": str(both),
        "ssl.keyStore.type": "PEM",
        "ssl.trustStore.location": str(authority.file),
        "ssl.trustStore.type": "PEM",
    }
    options = {**_OPTIONS, "logback.configurationFile": str(logback), "java.security.auth.login.config": str(jaas)}
    options |= {f"zookeeper.{name}": value for name, value in stores.items()}
    config.write_text(
        java.properties(
            {
                "tickTime": 500,
                "dataDir": str(folder / "data"),
                "secureClientPort": port,
                "secureClientPortAddress": "127.0.0.1",
            }
        )
    )
    (folder / "password").write_text(PASSWORD)
    command = java.command(
        LocalSettings().jars_dir / "data-plane",
        "org.apache.zookeeper.server.ZooKeeperServerMain",
        [str(config)],
        ("-Xmx128m", *java.SHORT_LIVED, *(f"-D{name}={value}" for name, value in options.items())),
    )
    with (folder / "zookeeper.log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            yield Secured(port, authority, folder / "password")
        finally:
            process.kill()


@asynccontextmanager
async def nodes_of(settings: ClusterManagerSettings, password: Watched[str] | None) -> AsyncIterator[ZooKeeperNodes]:
    access = ZooKeeperAccess(settings.zookeeper_client_tls(), settings.zookeeper_user, password)
    timeout_s = settings.zookeeper_session_timeout_s
    nodes = ZooKeeperNodes(settings.zookeeper, "cluster", timeout_s, DEADLINE_S, lambda: None, access=access)
    nodes.start()
    try:
        yield nodes
    finally:
        await nodes.stop()


async def test_a_client_with_certificate_and_password_reads_and_writes(secured: Secured) -> None:
    settings = secured.settings()
    async with nodes_of(settings, settings.zookeeper_password()) as nodes:
        await eventually_async(lambda: nodes.connected, DEADLINE_S, "a session is there")
        assert await nodes.hosts() == ()
        await nodes.write_map({}, None)
        found = await nodes.read_map()
        assert found is not None and found.containers == {}


async def answers(nodes: ZooKeeperNodes) -> bool:
    return await nodes.hosts() == ()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
async def test_a_client_that_was_refused_tries_again_with_the_next_password(
    secured: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "password"
    file.write_text("wrong")
    settings = secured.settings(zookeeper_password_file=str(file), zookeeper_session_timeout_s=2.0)
    password = settings.zookeeper_password()
    assert password is not None
    async with nodes_of(settings, password) as nodes:
        await eventually_async(lambda: "refuses the user" in caplog.text, DEADLINE_S, "the password is refused")
        # kazoo says that it is connected before it logs in, with either password.
        with pytest.raises(NodesError):
            await nodes.hosts()
        file.write_text(PASSWORD)
        password.look()
        await eventually_async(partial(answers, nodes), DEADLINE_S, "the nodes are read")


@pytest.mark.parametrize("part", ["zookeeper_tls", "zookeeper_tls_certificate"])
async def test_a_client_without_tls_or_certificate_gets_no_session(secured: Secured, part: str) -> None:
    less = {"zookeeper_tls_certificate": "", "zookeeper_tls_key": ""}
    if part == "zookeeper_tls":
        less |= {part: False, "zookeeper_tls_authorities": ""}  # type: ignore[dict-item]
    settings = secured.settings(**less)
    access = ZooKeeperAccess(settings.zookeeper_client_tls(), "", None)
    client = KazooClient(settings.zookeeper, timeout=REFUSED_S, handler=access)
    with pytest.raises(access.timeout_exception):
        await asyncio.to_thread(client.start, REFUSED_S)
    await asyncio.to_thread(client.stop)
