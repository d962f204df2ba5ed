"""How kazoo connects with TLS, and what it is refused; the whole of it with a real ZooKeeper is among the integration
tests."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.certificates import Authority

from cluster_manager.settings import ClusterManagerSettings
from sluice.security.tls import PROTOCOLS, serving_context, watched_identity
from sluice.security.watched import SecurityConfigError
from sluice.zookeeper_access import ZooKeeperAccess

CONNECT_S = 60.0


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def port(authority: Authority) -> AsyncIterator[int]:
    """Of a server with TLS that sends its name."""
    pair = authority.issue("server", "DNS:zookeeper.example")
    identity = watched_identity(str(pair.certificate), str(pair.key), PROTOCOLS[0])
    assert identity is not None

    async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=serving_context(identity))
    yield server.sockets[0].getsockname()[1]
    server.close()


async def greeting(access: ZooKeeperAccess, port: int, hostname: str) -> bytes:
    """What kazoo would read first: it gives an address, and the name that this was found by."""

    def read() -> bytes:
        with access.create_connection(("127.0.0.1", port), hostname=hostname, timeout=CONNECT_S, use_ssl=False) as sock:
            data: bytes = sock.recv(4)
            return data

    return await asyncio.to_thread(read)


def access_of(authority: Authority, **more: Any) -> ZooKeeperAccess:
    settings = ClusterManagerSettings(zookeeper_tls=True, zookeeper_tls_authorities=str(authority.file), **more)
    return ZooKeeperAccess(settings.zookeeper_client_tls(), settings.zookeeper_user, settings.zookeeper_password())


async def test_zookeeper_is_trusted_by_its_authority_and_its_name(
    port: int, authority: Authority, tmp_path: Path
) -> None:
    assert await greeting(access_of(authority), port, "zookeeper.example") == b"here"
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        await greeting(access_of(authority), port, "elsewhere.example")
    unchecked = access_of(authority, zookeeper_tls_check_host=False)
    assert await greeting(unchecked, port, "elsewhere.example") == b"here"
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        await greeting(access_of(Authority(tmp_path, "stranger")), port, "zookeeper.example")


async def test_each_connection_logs_in_with_the_newest_password(
    authority: Authority, port: int, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("first\n")
    settings = ClusterManagerSettings(zookeeper_user="sluice", zookeeper_password_file=str(file))
    password = settings.zookeeper_password()
    assert password is not None
    access = ZooKeeperAccess(None, settings.zookeeper_user, password)
    for word in ("first", "second"):
        file.write_text(word)
        password.look()
        await asyncio.to_thread(lambda: access.create_connection(("127.0.0.1", port)).close())
        assert access.sasl == {"mechanism": "DIGEST-MD5", "username": "sluice", "password": word}


def test_a_user_without_a_password_is_refused() -> None:
    with pytest.raises(SecurityConfigError, match="go together"):
        ClusterManagerSettings(zookeeper_user="sluice").zookeeper_password()
