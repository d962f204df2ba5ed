"""Contexts of TLS made of files: what is refused, and what a handshake with them allows."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.certificates import Authority, Pair, lock

from sluice.security.contexts import ClientTls, client_context
from sluice.security.tls import (
    PROTOCOLS,
    Identity,
    serving_context,
    watched_client,
    watched_identity,
)
from sluice.security.watched import SecurityConfigError, Watched

SETTING = "SLUICE_STORE_TLS"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def identity_of(pair: Pair, protocols: str = PROTOCOLS[0]) -> Watched[Identity]:
    identity = watched_identity(str(pair.certificate), str(pair.key), protocols)
    assert identity is not None
    return identity


def trusting(authority: Authority, **more: object) -> ssl.SSLContext:
    return client_context(ClientTls(SETTING, str(authority.file), **more))  # type: ignore[arg-type]


@asynccontextmanager
async def echoing(context: ssl.SSLContext) -> AsyncIterator[int]:
    """The port of a server that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def said_by(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"hello\n")
    return await reader.readline()


async def serial_number(port: int, context: ssl.SSLContext, name: str = "localhost") -> str:
    """Of the certificate that a new connection is shown."""
    _reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    try:
        shown: str = writer.get_extra_info("peercert")["serialNumber"]
        return shown
    finally:
        writer.close()


def test_a_server_without_files_has_no_tls() -> None:
    assert watched_identity("", "", PROTOCOLS[0]) is None


def test_a_certificate_without_its_key_is_refused(authority: Authority) -> None:
    pair = authority.issue("server")
    with pytest.raises(SecurityConfigError, match="SLUICE_TLS: a certificate is given without its key"):
        watched_identity(str(pair.certificate), "", PROTOCOLS[0])
    with pytest.raises(SecurityConfigError, match="a key is given without its certificate"):
        ClientTls(SETTING, key=str(pair.key))


def test_a_certificate_with_the_key_of_another_is_refused(authority: Authority) -> None:
    pair, other = authority.issue("server"), authority.issue("other")
    with pytest.raises(SecurityConfigError, match=r"other\.key is not that of"):
        identity_of(Pair(pair.certificate, other.key))


def test_a_key_with_a_password_is_refused(authority: Authority) -> None:
    pair = authority.issue("server")
    lock(pair.key, "secret")
    with pytest.raises(SecurityConfigError, match="must have no password"):
        identity_of(pair)


@pytest.mark.parametrize("file", ["certificate", "key"])
def test_a_file_that_is_no_pem_is_refused(authority: Authority, file: str) -> None:
    pair = authority.issue("server")
    getattr(pair, file).write_text("nothing of the kind")
    with pytest.raises(SecurityConfigError, match="must hold a certificate chain and a key in PEM"):
        identity_of(pair)


def test_a_file_that_is_not_there_is_refused(authority: Authority, tmp_path: Path) -> None:
    with pytest.raises(SecurityConfigError, match="missing cannot be read: No such file"):
        identity_of(Pair(tmp_path / "missing", authority.issue("server").key))
    with pytest.raises(SecurityConfigError, match="missing cannot be read: No such file"):
        watched_client("stores", True, ClientTls(SETTING, str(tmp_path / "missing")))


def test_authorities_that_are_no_certificates_are_refused(authority: Authority) -> None:
    key = str(authority.issue("server").key)
    with pytest.raises(SecurityConfigError, match=r"SLUICE_STORE_TLS: .*server.key: it holds no certificates"):
        watched_client("stores", True, ClientTls(SETTING, key))


def test_files_for_a_connection_whose_tls_is_off_are_refused(authority: Authority) -> None:
    with pytest.raises(SecurityConfigError, match="TLS is off, but files for it are given"):
        watched_client("stores", False, ClientTls(SETTING, str(authority.file)))
    assert watched_client("stores", False, ClientTls(SETTING)) is None


@pytest.mark.parametrize("protocols", ["", "TLSv1.1,TLSv1.2", "TLSv1.2", "SSLv3"])
def test_protocols_that_are_old_or_cannot_be_kept_to_are_refused(protocols: str) -> None:
    with pytest.raises(SecurityConfigError, match="SLUICE_TLS_PROTOCOLS must be one of"):
        watched_identity("", "", protocols)


async def test_a_server_is_trusted_by_its_authority_and_its_name(authority: Authority, tmp_path: Path) -> None:
    async with echoing(serving_context(identity_of(authority.issue("server")))) as port:
        await serial_number(port, trusting(authority))
        with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
            await serial_number(port, trusting(Authority(tmp_path, "stranger")))
        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            await serial_number(port, trusting(authority), "elsewhere")


async def test_without_the_check_of_host_names_the_authority_still_counts(authority: Authority, tmp_path: Path) -> None:
    async with echoing(serving_context(identity_of(authority.issue("server")))) as port:
        await serial_number(port, trusting(authority, check_host=False), "elsewhere")
        with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
            await serial_number(port, trusting(Authority(tmp_path, "stranger"), check_host=False))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1")
@pytest.mark.parametrize(
    ("protocols", "refused"),
    [(PROTOCOLS[0], ssl.TLSVersion.TLSv1_1), ("TLSv1.3", ssl.TLSVersion.TLSv1_2)],
)
async def test_a_server_refuses_older_protocols(authority: Authority, protocols: str, refused: ssl.TLSVersion) -> None:
    old = trusting(authority)
    old.set_ciphers("ALL:@SECLEVEL=0")
    old.minimum_version = old.maximum_version = refused
    async with echoing(serving_context(identity_of(authority.issue("server"), protocols))) as port:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await serial_number(port, old)


async def test_new_connections_are_shown_the_new_certificate_and_open_ones_go_on(authority: Authority) -> None:
    pair, replacement = authority.issue("server"), authority.issue("replacement")
    identity, client = identity_of(pair), trusting(authority)
    async with echoing(serving_context(identity)) as port:
        first = await serial_number(port, client)
        opened = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname="localhost")
        pair.replace_by(replacement)
        identity.look()
        second = await serial_number(port, client)
        assert second != first
        assert await said_by(*opened) == b"hello\n"
        opened[1].close()
        pair.certificate.write_text("half a certif")
        identity.look()
        assert "must hold a certificate chain" in (identity.problem() or "")
        assert await serial_number(port, client) == second


def test_a_client_takes_new_authorities(authority: Authority, tmp_path: Path) -> None:
    watched = watched_client("stores", True, ClientTls(SETTING, str(authority.file)))
    assert watched is not None
    before = watched.current.get_ca_certs()
    authority.file.write_bytes(Authority(tmp_path, "next").file.read_bytes())
    watched.look()
    assert watched.current.get_ca_certs() != before


def test_no_text_shows_the_key(authority: Authority) -> None:
    current = identity_of(authority.issue("server")).current
    assert "PRIVATE" in current.key.decode() and "PRIVATE" not in repr(current)
