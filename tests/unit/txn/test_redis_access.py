"""The timer wheel's Redis behind TLS, with a user of its own: a real server, with TLS put in front."""

import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.certificates import Authority
from support.redis_server import PrivateRedis, private_redis
from support.tls_front import tls_front

from sluice.security.tls import PROTOCOLS, serving_context, watched_identity
from sluice.security.watched import SecurityConfigError
from txn_manager.wheel.errors import WheelUnavailableError
from txn_manager.wheel.redis_access import RedisAccess, redis_access
from txn_manager.wheel.timer_redis import TimerRedis

PASSWORD = "p@ss/word"


@pytest.fixture(scope="module")
def server() -> Iterator[PrivateRedis]:
    with private_redis() as server:
        yield server


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def port(server: PrivateRedis, authority: Authority) -> AsyncIterator[int]:
    """Where the server speaks TLS."""
    async with tls_front(serving(authority), server.port) as port:
        yield port


@pytest.fixture
def password_file(server: PrivateRedis, tmp_path: Path) -> Path:
    """Of the user `sluice`, who may do everything that the wheel does."""
    set_password(server, PASSWORD)
    file = tmp_path / "password"
    file.write_text(f"{PASSWORD}\n")
    return file


def set_password(server: PrivateRedis, password: str) -> None:
    rights = ["~sluice:*", "+@all", "-@dangerous"]
    server.client.execute_command("ACL", "SETUSER", "sluice", "reset", "on", f">{password}", *rights, "+info")


def serving(authority: Authority, names: str = "DNS:localhost,IP:127.0.0.1") -> ssl.SSLContext:
    pair = authority.issue("redis", names)
    identity = watched_identity(str(pair.certificate), str(pair.key), PROTOCOLS[0])
    assert identity is not None
    return serving_context(identity)


async def begin(access: RedisAccess) -> None:
    """Begin a wheel. Raises WheelUnavailableError."""
    redis = TimerRedis(access.client, timeout_s=10.0)
    try:
        await redis.turn("sluice:timers:{test:3}:a", "", "", {})
    finally:
        await redis.close()


def replace(file: Path, content: bytes, access: RedisAccess) -> None:
    """Have the file hold something else, and the wheel notice it."""
    file.write_bytes(content)
    for watched in access.watched:
        if watched is not None:
            watched.look()


async def test_a_wheel_logs_in_with_tls(
    server: PrivateRedis, port: int, authority: Authority, password_file: Path
) -> None:
    access = redis_access(f"rediss://sluice@localhost:{port}/0?ssl_ca_certs={authority.file}", str(password_file))
    await begin(access)
    assert server.client.keys("*") == ["sluice:timers:{test:3}:a"]


async def test_another_node_is_reached_as_the_first_one_is(
    server: PrivateRedis, port: int, authority: Authority, password_file: Path
) -> None:
    access = redis_access(f"rediss://sluice@elsewhere:1/0?ssl_ca_certs={authority.file}", str(password_file))
    client = access.client(("localhost", port))
    assert await client.ping()
    assert "sluice" in {each["user"] for each in server.client.client_list()}
    await client.aclose()


async def test_a_wheel_refuses_a_server_it_does_not_trust(port: int, tmp_path: Path, authority: Authority) -> None:
    stranger = Authority(tmp_path, "stranger")
    for url in (f"rediss://localhost:{port}/0?ssl_ca_certs={stranger.file}", f"rediss://localhost:{port}/0"):
        with pytest.raises(WheelUnavailableError, match="certificate verify failed"):
            await begin(redis_access(url, ""))


async def test_host_names_count_unless_they_are_switched_off(server: PrivateRedis, authority: Authority) -> None:
    async with tls_front(serving(authority, "DNS:elsewhere"), server.port) as port:
        url = f"rediss://localhost:{port}/0?ssl_ca_certs={authority.file}"
        with pytest.raises(WheelUnavailableError, match="Hostname mismatch"):
            await begin(redis_access(url, ""))
        await begin(redis_access(f"{url}&ssl_check_hostname=false", ""))


async def test_new_connections_take_new_files(
    port: int, authority: Authority, password_file: Path, tmp_path: Path
) -> None:
    trusted = Authority(tmp_path, "former").file
    access = redis_access(f"rediss://sluice@localhost:{port}/0?ssl_ca_certs={trusted}", str(password_file))
    replace(password_file, b"former", access)
    with pytest.raises(WheelUnavailableError, match="certificate verify failed"):
        await begin(access)
    replace(trusted, authority.file.read_bytes(), access)
    with pytest.raises(WheelUnavailableError, match="invalid username-password"):
        await begin(access)
    replace(password_file, PASSWORD.encode(), access)
    await begin(access)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis://h:1/0?ssl_ca_certs={0}", "TLS is off, but files for it are given"),
        ("rediss://h:1/0?ssl_certfile={0}", "a certificate is given without its key"),
        ("rediss://h:1/0?ssl_cert_reqs=none", "ssl_cert_reqs cannot be given"),
        ("redis://u:secret@h:1/0", "has a password, and so has SLUICE_REDIS_PASSWORD_FILE"),
    ],
)
def test_what_is_half_configured_is_refused(authority: Authority, password_file: Path, url: str, why: str) -> None:
    with pytest.raises(SecurityConfigError, match=why) as refused:
        redis_access(url.format(authority.file), str(password_file))
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("url", ["redis://:canary@127.0.0.1:canary", "127.0.0.1:6379", "http://:canary@127.0.0.1"])
def test_what_is_no_address_is_refused_without_what_it_says(url: str) -> None:
    with pytest.raises(SecurityConfigError, match="SLUICE_REDIS_URL is not redis://") as refused:
        redis_access(url, "")
    assert "canary" not in str(refused.value)


def test_an_empty_password_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("\n")
    with pytest.raises(SecurityConfigError, match="holds no password"):
        redis_access("redis://u@h:1/0", str(tmp_path / "password"))


def test_no_text_shows_a_password() -> None:
    assert "secret" not in repr(redis_access("redis://u:secret@h:1/0", ""))
