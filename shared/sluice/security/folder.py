"""A folder with all that a secured system needs: certificates, stores, signing key, users and passwords.

`sluice security init` writes one, and so does the local stack for a system of its own. Every file is for its owner
alone. Passwords of programs are in the form in which each program reads them from a file, so that none is on a command
line.
"""

import base64
import json
import os
import secrets
import tempfile
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path

from sluice.security import authority
from sluice.security.passwords import hash_password
from sluice.security.resources import Permission, reader_group_resource, scope_resource, stream_resource
from sluice.security.watched import SecurityConfigError

LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
USERS = ("admin", "writer", "reader")
KAFKA_USER = "sluice"
AUTO_SCALER = "auto-scaler"
"""The user that segment stores report their load as."""


class File(StrEnum):
    """The files of the folder, besides `<user>.password` for each of `USERS` and the auto-scaler."""

    AUTHORITY = "ca.pem"
    AUTHORITY_KEY = "ca.key"
    CERTIFICATE = "server.pem"
    KEY = "server.key"
    PAIR = "server-pair.pem"
    """Certificate and key in one file, as Kafka and ZooKeeper want them."""
    KEY_STORE = "server.p12"
    KEY_STORE_PASSWORD = "server.p12.password"
    TRUST_STORE = "ca.jks"
    TRUST_STORE_PASSWORD = "ca.jks.password"
    TOKEN_KEY = "token.key"
    ACCOUNTS = "accounts"
    KAFKA_CLIENT = "kafka.json"
    KAFKA_BROKER = "kafka.jaas"
    KAFKA_FORMAT = "kafka.format"
    """The user of Kafka, as an argument of the tool that formats a broker's folder."""
    REDIS_PASSWORD = "redis.password"
    REDIS = "redis.conf"
    SEGMENT_STORE = "segment-store.args"
    """Signing key and credentials of a segment store, as arguments of Java."""


def init(folder: Path, names: Iterable[str] = (), scope: str = "demo", *, replace: bool = False) -> None:
    """Fill the folder. `names` are published besides `LOCAL_NAMES`; writer and reader may use `scope`.

    Kafka has learned the password of its user when its own folder was made, so that one stays when the others are
    replaced. Raises SecurityConfigError, and changes nothing, if one of the files is there and may not be replaced.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = sorted(file.name for file in folder.iterdir() if file.name in set(File) | set(_password_files()))
        if there and not replace:
            raise SecurityConfigError(f"{folder} has {', '.join(there)} already: they are replaced only on demand")
        with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as new:
            _make(Path(new), dict.fromkeys((*LOCAL_NAMES, *names)), scope, _kafka_password(folder) or _password())
            # The accounts come last: with them the folder is complete.
            for file in sorted(Path(new).iterdir(), key=lambda file: file.name == File.ACCOUNTS):
                file.chmod(0o600)
                with file.open("r+b") as written:
                    os.fsync(written.fileno())
                file.replace(folder / file.name)
    except OSError as error:
        raise SecurityConfigError(f"{error.filename} cannot be written: {error.strerror}") from None


def password_of(folder: Path, user: str) -> str:
    """The password that `init` gave a user. Raises OSError."""
    return (folder / f"{user}.password").read_text()


def access_lists(scope: str) -> dict[str, str]:
    """What each user may do, as its entry of the password file has it: the least that its work needs.

    Pravega's Java client reads with what the reader has. Its Rust client, and Python's, which is made of it, read only
    with READ_UPDATE on the streams.
    """
    update, read = Permission.READ_UPDATE.name, Permission.READ.name
    streams, groups = stream_resource(scope, "*"), reader_group_resource(scope, "*")
    return {
        "admin": f"prn::*,{update}",
        "writer": f"{streams},{update}",
        "reader": f"{scope_resource(scope)},{read};{streams},{read};{groups},{read}",
        AUTO_SCALER: f"{stream_resource('_system', '_requeststream')},{update}",
    }


def _password_files() -> list[str]:
    return [f"{user}.password" for user in (*USERS, AUTO_SCALER)]


def _kafka_password(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / File.KAFKA_CLIENT).read_text())["sasl.password"])
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise SecurityConfigError(f"{folder / File.KAFKA_CLIENT} does not say Kafka's password any more") from None


def _make(folder: Path, names: Iterable[str], scope: str, kafka_password: str) -> None:
    authority_, authority_key = folder / File.AUTHORITY, folder / File.AUTHORITY_KEY
    certificate, key = folder / File.CERTIFICATE, folder / File.KEY
    authority.make_authority(authority_, authority_key)
    authority.make_certificate(authority_, authority_key, names, certificate, key)
    (folder / File.PAIR).write_text(key.read_text() + certificate.read_text())
    key_store_password = folder / File.KEY_STORE_PASSWORD
    key_store_password.write_text(_password())
    authority.make_key_store(certificate, key, folder / File.KEY_STORE, key_store_password)
    trust_store_password = _password()
    (folder / File.TRUST_STORE_PASSWORD).write_text(trust_store_password)
    trust_store = authority.trust_store(authority_.read_text(), trust_store_password)
    (folder / File.TRUST_STORE).write_bytes(trust_store)
    _write_users(folder, scope)
    _write_kafka(folder, kafka_password)
    redis = _password()
    (folder / File.REDIS_PASSWORD).write_text(redis)
    (folder / File.REDIS).write_text(f"requirepass {redis}\n")


def _write_users(folder: Path, scope: str) -> None:
    accounts = []
    for user, entries in access_lists(scope).items():
        password = _password()
        (folder / f"{user}.password").write_text(password)
        accounts.append(f"{user}:{hash_password(password)}:{entries}\n")
    (folder / File.ACCOUNTS).write_text("".join(accounts))
    signing_key = _password(48)
    (folder / File.TOKEN_KEY).write_text(signing_key)
    credentials = base64.b64encode(f"{AUTO_SCALER}:{password_of(folder, AUTO_SCALER)}".encode()).decode()
    (folder / File.SEGMENT_STORE).write_text(
        f"-DautoScale.security.auth.token.signingKey.basis={signing_key}\n"
        f"-Dpravega.client.auth.method=Basic\n-Dpravega.client.auth.token={credentials}\n"
    )


def _write_kafka(folder: Path, password: str) -> None:
    client = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": KAFKA_USER,
        "sasl.password": password,
        "ssl.ca.pem": (folder / File.AUTHORITY).read_text(),
    }
    (folder / File.KAFKA_CLIENT).write_text(json.dumps(client, indent=2) + "\n")
    module = "org.apache.kafka.common.security.scram.ScramLoginModule"
    login = f'{module} required username="{KAFKA_USER}" password="{password}";'
    (folder / File.KAFKA_BROKER).write_text(f"KafkaServer {{ {login} }};\n")
    (folder / File.KAFKA_FORMAT).write_text(f"--add-scram\nSCRAM-SHA-512=[name={KAFKA_USER},password={password}]\n")


def _password(random_bytes: int = 24) -> str:
    """Letters, digits, `-` and `_`: every program reads it the same way."""
    return secrets.token_urlsafe(random_bytes)
