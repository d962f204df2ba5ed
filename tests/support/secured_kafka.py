"""A Kafka that wants TLS and a password, with its own bounds of sessions; the tests have a listener without either."""

import json
import secrets
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

from harness import System
from sluice_local.home import HOST
from sluice_local.ports import find_block

# One of its own for each system: what is run for another one shows in `ps`, too.
_PASSWORD = f"p4ss;word={secrets.token_hex(8)}"
_KEYTOOL_RUNS_S = 60.0
_LISTENER = "listener.name.secured"
_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def secure(system: System) -> dict[str, str]:
    """Have the broker, which does not run yet, want TLS and a password; the environment of who gets along with that."""
    folder = system.settings.home / "secured"
    folder.mkdir(parents=True)
    port = find_block(1).start
    configuration = _configuration(folder)
    system.configure_kafka({**_listeners(system, port), **_guarded(folder)})
    return {"SLUICE_KAFKA_BOOTSTRAP": f"{HOST}:{port}", "SLUICE_KAFKA_CONF": str(configuration)}


def shows_password(system: System, names: Iterable[str]) -> list[str]:
    """The processes whose logs have the password in them, and the command lines that have."""
    logs = [name for name in names if _PASSWORD in system.log(name).read_text()]
    commands = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return logs + [command for command in commands.splitlines() if _PASSWORD in command]


def _configuration(folder: Path) -> Path:
    """Make the broker's certificate, and return what clients are configured with."""
    store, authority, file = folder / "kafka.p12", folder / "ca.pem", folder / "kafka.json"
    pair = "-genkeypair -alias kafka -keyalg RSA -dname CN=kafka -ext san=ip:127.0.0.1"
    _keytool(f"{pair} -storetype PKCS12 -storepass {_PASSWORD} -keystore", store)
    _keytool(f"-exportcert -rfc -alias kafka -storepass {_PASSWORD} -keystore {store} -file", authority)
    conf = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "sluice",
        "sasl.password": _PASSWORD,
        "ssl.ca.location": str(authority),
        "fetch.message.max.bytes": 4_000_000,
    }
    file.write_text(json.dumps(conf))
    return file


def _keytool(arguments: str, file: Path) -> None:
    command = [shutil.which("keytool") or "keytool", *arguments.split(), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_KEYTOOL_RUNS_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _listeners(system: System, port: int) -> dict[str, str]:
    plain, controller = system.kafka_bootstrap, f"{HOST}:{system.settings.kafka_controller_port}"
    both = f"PLAINTEXT://{plain},SECURED://{HOST}:{port}"
    return {
        "listeners": f"{both},CONTROLLER://{controller}",
        "advertised.listeners": both,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL",
    }


def _guarded(folder: Path) -> dict[str, str | int]:
    return {
        "sasl.enabled.mechanisms": "PLAIN",
        f"{_LISTENER}.plain.sasl.jaas.config": f'{_PLAIN} required user_sluice="{_PASSWORD}";',
        f"{_LISTENER}.ssl.keystore.type": "PKCS12",
        f"{_LISTENER}.ssl.keystore.location": str(folder / "kafka.p12"),
        f"{_LISTENER}.ssl.keystore.password": _PASSWORD,
        # Kafka's own.
        "group.min.session.timeout.ms": 6_000,
    }
