"""Nothing secret is written: a canary stands in each setting, file and header that may hold a secret, and nowhere else.

What is looked through is all that a gateway says: its log at every level, health, metrics, answers with their headers,
and the records of all topics; and what is wrong with settings and files, in words.
"""

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from pydantic import SecretStr
from support.fuzzing import converse, grpc_call
from unit.gateway.conftest import served
from unit.gateway.rest.world import World

from api_gateway.main import guard_of
from api_gateway.settings import GatewaySettings
from cluster_manager.settings import ClusterManagerSettings
from retention_spark.settings import SparkSettings
from sluice.controller_api import controller_pb2 as pb
from sluice.kafka_config.conf import KafkaConfError
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.runtime import Runtime
from sluice.security.passwords import hash_password
from sluice.security.watched import SecurityConfigError
from sluice.settings import ServiceSettings, settings_of
from sluice.telemetry import logs
from sluice.telemetry.logs import LOUD, JsonFormatter, set_up_logs
from stream_workflows.settings import WorkflowSettings
from txn_manager.settings import TxnSettings
from txn_manager.wheel.redis_access import redis_access

CANARY = "c4n4ry-in-the-mine"
SERVICES: tuple[type[ServiceSettings], ...] = (
    GatewaySettings,
    WorkflowSettings,
    TxnSettings,
    ClusterManagerSettings,
    SparkSettings,
)
SECRET: dict[str, str] = {
    "token_key": CANARY,
    "kafka_conf": json.dumps(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "sluice",
            "sasl.password": CANARY,
        }
    ),
    "redis_url": f"redis://sluice:{CANARY}@127.0.0.1:6379/0",
}
"""A value for each setting that is secret."""


def formatted(records: list[logging.LogRecord]) -> str:
    formatter = JsonFormatter("test", "test-0")
    return "\n".join(formatter.format(record) for record in records)


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Callable[[], str]:
    """All that was logged, as services write it."""
    caplog.set_level(logging.DEBUG)
    return lambda: formatted(caplog.records)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRET.items():
        monkeypatch.setenv(f"SLUICE_{name.upper()}", value)


def test_there_is_a_canary_for_every_setting_that_is_secret() -> None:
    secret = {
        name for kind in SERVICES for name, field in kind.model_fields.items() if "SecretStr" in str(field.annotation)
    }
    assert secret == SECRET.keys()
    named = {name for kind in SERVICES for name in kind.model_fields if any(w in name for w in ("password", "secret"))}
    assert all(name.endswith("_file") for name in named), "a secret is a SecretStr, or stands in a file"


@pytest.mark.parametrize("kind", SERVICES)
def test_settings_and_their_summary_show_no_secret(kind: type[ServiceSettings], environment: None) -> None:
    settings = settings_of(kind)
    shown = f"{settings!r} {settings} {settings.model_dump()} {settings.security()}"
    assert CANARY not in shown and CANARY not in formatted([_record(settings.security())])
    assert settings.security()["kafka"] == "SASL_PLAINTEXT PLAIN"
    assert settings.security()["tokens"] == "signed"


def _record(extra: dict[str, str]) -> logging.LogRecord:
    return logging.getLogger("test").makeRecord("test", logging.INFO, "", 0, "security", (), None, extra=extra)


BROKEN = {
    "kafka_conf": [f'{{"sasl.password": "{CANARY}"', f'{{"sasl.password": ["{CANARY}"]}}'],
    "redis_url": [f"redis://u:{CANARY}@h:port/0", f"rediss://u:{CANARY}@h/0?ssl_wrong=1", f"{CANARY}"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BROKEN.items() for value in values])
def test_what_is_wrong_with_a_secret_setting_is_said_without_it(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(f"SLUICE_{name.upper()}", value)
    said = ""
    with suppress(SystemExit):
        settings = settings_of(TxnSettings)
        try:
            settings.given_kafka_conf()
            settings.security()
            redis_access(settings.redis_url.get_secret_value(), "").client()
        except (KafkaConfError, SecurityConfigError, ValueError) as error:
            said = f"{error} {error!r}"
    captured = capfd.readouterr()
    assert said or captured.err
    assert CANARY not in said + captured.err + captured.out


async def test_a_wrong_file_of_a_secret_is_named_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{CANARY}\nsecond line {CANARY}\n")
    for given in ({"token_key_file": str(file), "token_key": SecretStr(CANARY)}, {"tls_key": str(file)}):
        settings = GatewaySettings(instance="test", **given)
        with pytest.raises(SecurityConfigError) as refused:
            runtime_of(settings)
        assert CANARY not in f"{refused.value} {refused.value!r}"


@pytest.fixture
def accounts(tmp_path: Path) -> Path:
    """`alice` and a user whose hash is malformed."""
    file = tmp_path / "passwd"
    file.write_text(f"alice:{hash_password(CANARY)}:prn::*,READ_UPDATE\nbob:{CANARY}:prn::*,READ\n")
    return file


def basic(text: str) -> str:
    return f"Basic {base64.b64encode(text.encode()).decode()}"


HEADERS = {
    "right": basic(f"alice:{CANARY}"),
    "another user's": basic(f"carol:{CANARY}"),
    "a wrong password": basic(f"alice:{CANARY}x"),
    "a malformed hash": basic(f"bob:{CANARY}"),
    "no colon": basic(CANARY),
    "no Base64": f"Basic {CANARY}!!",
    "a token": f"Bearer {CANARY}.{CANARY}.{CANARY}",
    "no method": CANARY,
    "no such method": f"Other {CANARY}",
}


PATHS = ("/sluice/v1/scopes", "/v1/scopes", "/v1/health/details", "/readyz", "/metrics", "/openapi.json", "/")


def hidden(text: str) -> bool:
    """Neither as it is nor as it is sent."""
    encoded = {base64.b64encode(f"{user}:{CANARY}".encode()).decode() for user in ("alice", "carol", "bob")}
    return not any(secret in text for secret in (CANARY, *encoded))


@pytest.fixture
def secured(accounts: Path) -> GatewaySettings:
    given: dict[str, Any] = {name: SecretStr(value) for name, value in SECRET.items()}
    return GatewaySettings(instance="test", auth_enabled=True, auth_accounts=str(accounts), **given)


def runtime_of(settings: ServiceSettings) -> Runtime:
    return Runtime("api-gateway", settings, MemoryConnections(MemoryGroups(MemoryBroker())))


async def test_a_gateway_says_nothing_secret_over_grpc_in_its_log_or_to_topics(
    secured: GatewaySettings, log: Callable[[], str]
) -> None:
    runtime = runtime_of(secured)
    async with served(guard_of(runtime, secured), token_key=CANARY) as gateway:
        said = ""
        for kind, header in HEADERS.items():
            call = gateway.stub.createScope(pb.ScopeInfo(scope="sc"), metadata=[("authorization", header)])
            expected = grpc.StatusCode.OK if kind == "right" else grpc.StatusCode.UNAUTHENTICATED
            assert await call.code() is expected, kind
            said += f"{await call.details()} {await call.initial_metadata()} {await call.trailing_metadata()}"
        topics = "".join(
            f"{record.key()!r} {record.value()!r} {record.headers()}"
            for partition in gateway.system.broker.all_logs()
            for record in partition
        )
        assert '"principal":"alice"' in topics
    await runtime.stack.aclose()
    assert hidden(said) and hidden(topics) and hidden(log())


@pytest.fixture
def as_services_log(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """With the filters that services have, but for the one that leaves out what is too much."""
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    monkeypatch.setattr(logs, "AtMost", lambda **_: lambda _record: True)
    loggers = [logging.getLogger(name) for name in LOUD]
    before = [list(logger.filters) for logger in loggers]
    set_up_logs("api-gateway", "test", "debug")
    yield
    for logger, filters in zip(loggers, before, strict=True):
        logger.filters[:] = filters


async def test_credentials_that_are_no_text_are_not_logged_by_grpc_itself(
    secured: GatewaySettings, as_services_log: None, log: Callable[[], str]
) -> None:
    runtime = runtime_of(secured)
    async with served(guard_of(runtime, secured)) as gateway:
        sent = grpc_call(b"createScope", (b"authorization", f"Basic {CANARY}".encode() + b"\xff"))
        answer = await asyncio.to_thread(converse, ("127.0.0.1", gateway.port), sent)
        assert b"Authentication failed" in answer
    await runtime.stack.aclose()
    assert "call failed" in log() and hidden(log())


async def test_a_gateway_says_nothing_secret_over_http(secured: GatewaySettings, log: Callable[[], str]) -> None:
    runtime = runtime_of(secured)
    world = World(guard=guard_of(runtime, secured))
    await world.start()
    said = str(runtime.security) + str(runtime.heartbeat())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway") as client:
        for path in PATHS:
            for header in HEADERS.values():
                answer = await client.get(path, headers={"Authorization": header})
                said += f"{answer.status_code} {answer.headers} {answer.text}"
        assert (await client.get("/sluice/v1/scopes", headers={"Authorization": HEADERS["right"]})).status_code == 200
    await world.stop()
    await runtime.stack.aclose()
    assert "password file" in runtime.degraded and runtime.security["callers"] == "Basic"
    assert hidden(said) and hidden(log())


def test_the_canary_would_be_seen(log: Callable[[], str]) -> None:
    logging.getLogger("test").info("said", extra={"what": Any, "key": f"{CANARY}"})
    assert not hidden(log())
