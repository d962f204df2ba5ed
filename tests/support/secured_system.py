"""Users of a secured system: clients of several kinds, each as the user that it is given, and a search for secrets."""

import base64
import json
import os
import ssl
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
from confluent_kafka.admin import AdminClient
from typer.testing import CliRunner

from harness import System, eventually
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice.security.accounts import with_account
from sluice.security.folder import File, password_of
from sluice.security.passwords import hash_password
from sluice_cli.main import app
from sluice_client import Access, Client, open_client
from sluice_local.security import shown
from support.controller import outcome
from support.kafka import read
from support.pravega import manager

_SIGNED = "eyJhbGciOiJIUzUxMiJ9."
"""What every delegation token begins with."""
_DEADLINE_S = 60.0


class Secured:
    """A secured system that runs, and its users."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.folder = system.settings.security_dir
        self.authority = Path(shown(system.settings).authority)
        self.controller = f"tls://{system.settings.published(system.settings.grpc_port)}"

    def add_user(self, user: str, acl: str) -> None:
        """Another user, with a password of its own. Returns when the gateway knows it."""
        password = base64.b32encode(os.urandom(15)).decode()
        (self.folder / f"{user}.password").write_text(password)
        accounts = self.folder / File.ACCOUNTS
        accounts.write_bytes(with_account(accounts.read_bytes(), user, hash_password(password), acl))
        header = f"Basic {self.credentials(user)}"
        eventually(lambda: self.http_status("/v1/scopes", header) != 401, _DEADLINE_S, f"{user} is known")

    def credentials(self, user: str) -> str:
        """The token of `Basic`."""
        return base64.b64encode(f"{user}:{password_of(self.folder, user)}".encode()).decode()

    def java_environment(self, user: str) -> dict[str, str]:
        """For a Java client without any settings of its own."""
        return {"pravega_client_auth_method": "Basic", "pravega_client_auth_token": self.credentials(user)}

    def manager(self, user: str) -> Any:
        """The PyPI client's StreamManager: it takes the user from the environment when it is made."""
        with self.as_user(user):
            return manager(self.controller)

    @contextmanager
    def as_user(self, user: str) -> Iterator[None]:
        """The PyPI client's, and those of processes that are started inside, find this user in the environment."""
        given = {
            "pravega_client_auth_method": "Basic",
            "pravega_client_auth_username": user,
            "pravega_client_auth_password": password_of(self.folder, user),
            "pravega_client_tls_cert_path": str(self.authority),
        }
        os.environ.update(given)
        try:
            yield
        finally:
            for variable in given:
                del os.environ[variable]

    def client(self, user: str) -> AbstractAsyncContextManager[Client]:
        """The client library's."""
        return open_client(self.controller, access=Access.of_environment(self.environment(user)))

    @contextmanager
    def statuses(self) -> Iterator["Statuses"]:
        """For calls of single RPCs."""
        credentials = grpc.ssl_channel_credentials(self.authority.read_bytes())
        with grpc.secure_channel(self.controller.removeprefix("tls://"), credentials) as channel:
            yield Statuses(self, ControllerServiceStub(channel))

    def environment(self, user: str) -> dict[str, str]:
        """For the command line."""
        return {
            "SLUICE_HOME": str(self.system.settings.home),
            "SLUICE_API": self.system.rest_url,
            "SLUICE_CONTROLLER": self.controller,
            "SLUICE_USER": user,
            "SLUICE_PASSWORD_FILE": str(self.folder / f"{user}.password"),
            "SLUICE_CA": str(self.authority),
            "SLUICE_KAFKA_BOOTSTRAP": self.system.kafka_bootstrap,
            "SLUICE_KAFKA_CONF": str(self.folder / File.KAFKA_CLIENT),
            "SLUICE_TOKEN_KEY_FILE": str(self.folder / File.TOKEN_KEY),
            "SLUICE_STORE_TLS": "true",
            "SLUICE_STORE_TLS_AUTHORITIES": str(self.authority),
        }

    def sluice(self, user: str, line: str) -> tuple[int, str]:
        """The exit code of a command, and all that it prints."""
        result = CliRunner().invoke(app, line.split(), env=self.environment(user))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.stdout + result.stderr

    def http_status(self, path: str, authorization: str | None) -> int:
        return self._get(path, {} if authorization is None else {"Authorization": authorization}).status_code

    def readiness(self) -> str:
        """What the gateway says about itself."""
        return self._get("/readyz", {}).text

    def _get(self, path: str, headers: Mapping[str, str]) -> httpx.Response:
        context = ssl.create_default_context(cafile=str(self.authority))
        return httpx.get(f"{self.system.rest_url}{path}", headers=headers, verify=context, timeout=_DEADLINE_S)

    def secrets(self) -> dict[str, str]:
        """What nobody may ever show, by where it is from."""
        found = {file.name: file.read_text() for file in self.folder.glob("*.password")}
        users = [name.removesuffix(".password") for name in found if "." not in name.removesuffix(".password")]
        found |= {f"credentials of {user}": self.credentials(user) for user in users}
        found["token.key"] = (self.folder / File.TOKEN_KEY).read_text()
        found["kafka.json"] = self.kafka_client()["sasl.password"]
        for key in (File.KEY, File.AUTHORITY_KEY):
            found[str(key)] = (self.folder / key).read_text().splitlines()[1]
        found["a delegation token"] = _SIGNED
        return found

    def kafka_client(self) -> dict[str, str]:
        conf = json.loads((self.folder / File.KAFKA_CLIENT).read_text())
        return {**conf, "bootstrap.servers": self.system.kafka_bootstrap}

    def found_in(self, texts: Iterable[tuple[str, bytes]]) -> list[str]:
        """Which secrets are in which of the texts, each with its name."""
        secrets = {name: secret.encode() for name, secret in self.secrets().items()}
        return [f"{name} in {place}" for place, text in texts for name, secret in secrets.items() if secret in text]


class Statuses:
    """What single RPCs end with."""

    def __init__(self, secured: Secured, stub: ControllerServiceStub) -> None:
        self._secured = secured
        self._stub = stub

    def of(self, user: str | None, rpc: str, request: Any) -> str:
        """The name of the status for a user, or for nobody."""
        authorization = None if user is None else f"Basic {self._secured.credentials(user)}"
        return self.with_header(authorization, rpc, request)

    def with_header(self, authorization: str | None, rpc: str, request: Any) -> str:
        metadata = () if authorization is None else (("authorization", authorization),)
        return outcome(getattr(self._stub, rpc).future(request, timeout=_DEADLINE_S, metadata=metadata))


def archived(file: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a tar archive."""
    with tarfile.open(file) as archive:
        for member in archive.getmembers():
            if (content := archive.extractfile(member)) is not None:
                yield member.name, content.read()


def logs(system: System) -> Iterator[tuple[str, bytes]]:
    """The logs of all parts."""
    for file in system.settings.logs_dir.iterdir():
        yield file.name, file.read_bytes()


def command_lines(system: System) -> Iterator[tuple[str, bytes]]:
    """How the processes of all parts were started, and those that they have started."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes()
            ours = str(system.settings.home).encode() in line or b"sluice" in line
        except OSError:
            continue  # It has ended.
        if ours:
            yield f"the command line of {folder.name}", line


def records(client: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """Keys, values and headers of all that is in Kafka now."""
    bootstrap = client["bootstrap.servers"]
    for topic in AdminClient(dict(client)).list_topics(timeout=_DEADLINE_S).topics:
        for message in read(bootstrap, topic, conf=client):
            headers = b" ".join(pair[1] for pair in message.headers() or [] if isinstance(pair[1], bytes))
            yield topic, b" ".join((message.key() or b"", message.value() or b"", headers))
