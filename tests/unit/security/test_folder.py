"""What `sluice security init` writes, as those read it that use it."""

import json
import os
import socket
import ssl
import threading
from pathlib import Path

import pytest

from sluice.security.accounts import read_accounts
from sluice.security.folder import File, access_lists, init, password_of
from sluice.security.lint import lint_accounts
from sluice.security.passwords import verify
from sluice.security.watched import SecurityConfigError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("security") / "made"
    init(folder, ["gateway.example.org", "10.1.2.3"])
    return folder


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "::1", "gateway.example.org", "10.1.2.3"])
def test_the_certificate_is_accepted_for_every_published_name(folder: Path, name: str) -> None:
    assert handshake(folder, name) == "TLSv1.3"


def test_the_certificate_is_refused_for_another_name(folder: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"other\.example\.org"):
        handshake(folder, "other.example.org")


def test_the_key_is_in_pkcs8_without_a_password(folder: Path) -> None:
    assert (folder / File.KEY).read_text().startswith("-----BEGIN PRIVATE KEY-----")


def test_every_file_is_for_its_owner_alone(folder: Path) -> None:
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


def test_nothing_is_replaced_unless_told(folder: Path) -> None:
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    with pytest.raises(SecurityConfigError, match=r"has accounts, admin.password, .* already"):
        init(folder)
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_one_file_that_is_there_is_reason_enough_not_to_begin(tmp_path: Path) -> None:
    (tmp_path / "token.key").write_text("in use")
    with pytest.raises(SecurityConfigError, match=r"has token.key already"):
        init(tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["token.key"]
    init(tmp_path, replace=True)
    assert (tmp_path / "token.key").read_text() != "in use"


def test_kafka_is_still_called_with_the_password_that_it_knows(tmp_path: Path) -> None:
    def passwords() -> tuple[str, str]:
        client = json.loads((tmp_path / File.KAFKA_CLIENT).read_text())["sasl.password"]
        assert (
            client in (tmp_path / File.KAFKA_BROKER).read_text()
            and client in (tmp_path / File.KAFKA_FORMAT).read_text()
        )
        return client, (tmp_path / File.REDIS_PASSWORD).read_text()

    init(tmp_path)
    before, authority = passwords(), (tmp_path / File.AUTHORITY).read_text()
    init(tmp_path, replace=True)
    after = passwords()
    assert after[0] == before[0] and after[1] != before[1]
    assert (tmp_path / File.AUTHORITY).read_text() != authority


def test_two_folders_have_no_secret_in_common(folder: Path, tmp_path: Path) -> None:
    init(tmp_path)
    shared = [file.name for file in folder.iterdir() if file.read_bytes() == (tmp_path / file.name).read_bytes()]
    assert shared == []


@pytest.mark.parametrize("name", ["", "a b", "x\nbasicConstraints=CA:TRUE", "a,DNS:b"])
def test_what_is_no_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SecurityConfigError, match="neither a host name nor an address"):
        init(tmp_path / "made", [name])


def test_a_missing_openssl_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SecurityConfigError, match="openssl is missing"):
        init(tmp_path / "made")


def test_every_user_has_a_password_that_the_password_file_accepts(folder: Path) -> None:
    accounts = read_accounts((folder / File.ACCOUNTS).read_bytes())
    assert set(accounts) == set(access_lists("demo"))
    for user, account in accounts.items():
        assert verify(password_of(folder, user), account.stored_hash)


def test_the_password_file_has_nothing_to_warn_of(folder: Path) -> None:
    assert lint_accounts((folder / File.ACCOUNTS).read_bytes()) == []


def handshake(folder: Path, name: str) -> str | None:
    """The protocol that a client and a server with the folder's files agree on."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / File.PAIR)
    client = ssl.create_default_context(cafile=folder / File.AUTHORITY)
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            with server.wrap_socket(theirs, server_side=True):
                pass
        except (ssl.SSLError, OSError):
            theirs.close()  # The client says what is wrong.

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        with ours, client.wrap_socket(ours, server_hostname=name) as connection:
            return connection.version()
    finally:
        serving.join()


def test_every_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.add(os.fstat(descriptor).st_ino))
    init(tmp_path)
    assert {file.stat().st_ino for file in tmp_path.iterdir()} == synced
