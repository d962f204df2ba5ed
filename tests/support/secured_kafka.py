"""A Kafka that wants TLS and a password, with its own bounds of sessions; the tests have a listener without either."""

import json
import secrets
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from harness.system import System, claimed_ports
from sluice_local.home import HOST
from support.ports import free_ports

# One of its own for each system: what is run for another one shows in `ps`, too.
_PASSWORD = f"p4ss;word={secrets.token_hex(8)}"
_KEYTOOL_RUNS_S = 60.0
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


class SecuredListener:
    """A listener beside the plain one of a system whose broker does not run yet."""

    def __init__(self, system: System, name: str) -> None:
        self._folder = system.settings.home / name
        self._folder.mkdir(parents=True)
        self._authority = self._folder / "ca.pem"
        self._make_certificate()
        self._name = name
        (port,) = free_ports(1, claimed_ports(system.settings))
        self._address = f"{HOST}:{port}"
        self._plain = system.kafka_bootstrap
        self._controller = f"{HOST}:{system.settings.kafka_controller_port}"

    def broker(self, users: Iterable[str]) -> dict[str, str | int]:
        """What the broker is configured with; these users have a password."""
        name, secured = self._name.upper(), f"listener.name.{self._name}"
        both = f"PLAINTEXT://{self._plain},{name}://{self._address}"
        known = " ".join(f'user_{user}="{_password_of(user)}"' for user in users)
        return {
            "listeners": f"{both},CONTROLLER://{self._controller}",
            "advertised.listeners": both,
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,{name}:SASL_SSL",
            "sasl.enabled.mechanisms": "PLAIN",
            f"{secured}.plain.sasl.jaas.config": f"{_PLAIN} required {known};",
            f"{secured}.ssl.keystore.type": "PKCS12",
            f"{secured}.ssl.keystore.location": str(self._folder / "kafka.p12"),
            f"{secured}.ssl.keystore.password": _PASSWORD,
            # Kafka's own.
            "group.min.session.timeout.ms": 6_000,
        }

    def environment(self, user: str) -> dict[str, str]:
        """What makes a process that user."""
        conf = {
            "security.protocol": "sasl_ssl",
            "sasl.mechanisms": "PLAIN",
            "sasl.username": user,
            "sasl.password": _password_of(user),
            "ssl.ca.location": str(self._authority),
            "fetch.message.max.bytes": 4_000_000,
        }
        file = self._folder / f"{user}.json"
        file.write_text(json.dumps(conf))
        return {"SLUICE_KAFKA_BOOTSTRAP": self._address, "SLUICE_KAFKA_CONF": str(file)}

    def _make_certificate(self) -> None:
        store = self._folder / "kafka.p12"
        pair = "-genkeypair -alias kafka -keyalg RSA -dname CN=kafka -ext san=ip:127.0.0.1"
        _keytool(f"{pair} -storetype PKCS12 -storepass {_PASSWORD} -keystore", store)
        _keytool(f"-exportcert -rfc -alias kafka -storepass {_PASSWORD} -keystore {store} -file", self._authority)


def secure(system: System) -> dict[str, str]:
    """Have the broker, which does not run yet, want TLS and a password; the environment of who gets along with that."""
    listener = SecuredListener(system, "secured")
    system.configure_kafka(listener.broker(["sluice"]))
    return listener.environment("sluice")


def shows_password(system: System, names: Iterable[str]) -> list[str]:
    """The processes whose logs have a password in them, and the command lines that have."""
    logs = [name for name in names if _PASSWORD in system.log(name).read_text()]
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return logs + [command for command in commands.splitlines() if _PASSWORD in command]


def _password_of(user: str) -> str:
    return f"{_PASSWORD}-{user}"


def _keytool(arguments: str, file: Path) -> None:
    command = [shutil.which("keytool") or "keytool", *arguments.split(), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_KEYTOOL_RUNS_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
