"""Certificates that do not count now, or not for what they are used for: refused wherever a service uses one."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY
from support.certificates import DAY, Authority, Pair, key_store

from api_gateway.edge.security.authentication import authentication_of
from api_gateway.settings import GatewaySettings
from cluster_manager.settings import ClusterManagerSettings
from sluice.process import Process
from sluice.security.contexts import ClientTls
from sluice.security.tls import PROTOCOLS, following_client, watched_identity
from sluice.security.watched import SecurityConfigError, Watched
from sluice.settings import ServiceSettings
from sluice.telemetry import tracing
from sluice.telemetry.scrape import refresh_all
from txn_manager.wheel.redis_access import redis_access

STARTS_S = 120.0
OVER: dict[str, Any] = {"begins": -9 * DAY, "ends": -DAY}
TO_COME: dict[str, Any] = {"begins": DAY, "ends": 9 * DAY}
YEAR = 365 * DAY


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, ends=YEAR)


def following(pair: Pair, published: str = "") -> Watched[Any]:
    settings = (str(pair.certificate), str(pair.key), PROTOCOLS[0], published, "THE_SETTING")
    identity = watched_identity(*settings)
    assert identity is not None
    return identity


@pytest.mark.parametrize(
    ("unusable", "why"),
    [
        (OVER, "server.pem expired on "),
        (TO_COME, "server.pem is not valid before "),
        ({"names": "DNS:elsewhere"}, "server.pem is for elsewhere, and not for localhost, which THE_SETTING gives out"),
    ],
)
def test_a_certificate_that_does_not_count_is_refused(authority: Authority, unusable: dict[str, Any], why: str) -> None:
    """While the service runs the one before stays in use; a service does not start with it."""
    pair = authority.issue("server", ends=YEAR)
    identity = following(pair, "localhost")
    before = identity.current
    pair.replace_by(authority.issue("next", **unusable))
    identity.look()
    assert identity.current is before
    assert (identity.problem() or "").startswith("an older version is in use: SLUICE_TLS: ")
    assert why in (identity.problem() or "")
    with pytest.raises(SecurityConfigError, match=why):
        following(pair, "localhost")


@pytest.mark.parametrize(
    ("names", "published"),
    [
        ("DNS:localhost,DNS:gateway.example.org", "Gateway.Example.ORG"),
        ("DNS:*.example.org", "gateway.example.org"),
        ("IP:127.0.0.1", "127.0.0.1"),
        ("IP:::1", "[::1]"),
        ("", "server"),
    ],
)
def test_a_certificate_for_the_published_host_is_taken(authority: Authority, names: str, published: str) -> None:
    assert following(authority.issue("server", names, ends=YEAR), published).problem() is None


@pytest.mark.parametrize(
    ("names", "published"),
    [
        ("", "elsewhere"),
        ("DNS:*.example.org", "a.b.example.org"),
        ("DNS:*.example.org", "example.org"),
        ("DNS:127.0.0.1", "127.0.0.2"),
    ],
)
def test_a_certificate_for_another_host_is_refused(authority: Authority, names: str, published: str) -> None:
    with pytest.raises(SecurityConfigError, match=f"and not for {published}"):
        following(authority.issue("server", names), published)


def test_a_gateway_publishes_only_a_host_that_its_certificate_names(authority: Authority) -> None:
    pair = authority.issue("server", "DNS:gateway.example.org")
    given: dict[str, Any] = {"tls_certificate": str(pair.certificate), "tls_key": str(pair.key)}
    assert GatewaySettings(grpc_published_host="gateway.example.org", **given).identity() is not None
    with pytest.raises(SecurityConfigError, match=r"not for 127.0.0.1, which SLUICE_GRPC_PUBLISHED_HOST gives out"):
        GatewaySettings(**given).identity()


def test_authorities_count_as_long_as_one_of_them_does(tmp_path: Path) -> None:
    old, new = Authority(tmp_path, "old", **OVER), Authority(tmp_path, "new", ends=YEAR)
    both = tmp_path / "both.pem"
    both.write_bytes(old.file.read_bytes() + new.file.read_bytes())
    watched = ServiceSettings(store_tls=True, store_tls_authorities=str(both)).store_client_tls()
    assert watched is not None and watched.problem() is None
    both.write_bytes(old.file.read_bytes())
    watched.look()
    assert "SLUICE_STORE_TLS: " in (watched.problem() or "") and "both.pem expired on" in (watched.problem() or "")


def of_stores(over: Pair, file: Path) -> object:
    return ServiceSettings(store_tls=True, store_tls_authorities=str(file)).store_client_tls()


def of_stores_in_a_key_store(over: Pair, file: Path) -> object:
    password = file.with_suffix(".password")
    password.write_text("open\n")
    tls = ClientTls("SLUICE_STORE_TLS", str(key_store(over, "open")), authorities_password_file=str(password))
    return following_client("segment stores", tls)


def of_zookeeper(over: Pair, file: Path) -> object:
    shown = {"zookeeper_tls_certificate": str(over.certificate), "zookeeper_tls_key": str(over.key)}
    return ClusterManagerSettings(zookeeper_tls=True, **shown).zookeeper_client_tls()  # type: ignore[arg-type]


def of_redis(over: Pair, file: Path) -> object:
    return redis_access(f"rediss://localhost?ssl_ca_certs={file}", "")


def of_issuer(over: Pair, file: Path) -> object:
    issuer = {"auth_oidc_issuer": "https://keycloak.example", "auth_oidc_ca": str(file)}
    return authentication_of(GatewaySettings(auth_enabled=True, **issuer))  # type: ignore[arg-type]


def of_collector(over: Pair, file: Path) -> object:
    os.environ["OTEL_EXPORTER_OTLP_CERTIFICATE"] = str(file)
    return tracing.files_of_tls("https://collector:4318")


def of_kafka(over: Pair, file: Path) -> object:
    return kafka(f'{{"security.protocol": "ssl", "ssl.ca.location": "{file}"}}')


def of_kafka_in_the_setting(over: Pair, file: Path) -> object:
    pem = file.read_text().replace("\n", "\\n")
    return kafka(f'{{"security.protocol": "ssl", "ssl.ca.pem": "{pem}"}}')


def of_kafka_in_a_key_store(over: Pair, file: Path) -> object:
    store = f'"ssl.keystore.location": "{key_store(over, "open")}", "ssl.keystore.password": "open"'
    return kafka(f'{{"security.protocol": "ssl", {store}}}')


def kafka(conf: str) -> object:
    return ServiceSettings(kafka_conf=conf).kafka_files()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "used_by",
    [
        of_stores,
        of_stores_in_a_key_store,
        of_zookeeper,
        of_redis,
        of_issuer,
        of_collector,
        of_kafka,
        of_kafka_in_the_setting,
        of_kafka_in_a_key_store,
    ],
)
def test_what_has_expired_is_refused_on_every_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, used_by: Callable[[Pair, Path], object]
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "")
    authority = Authority(tmp_path, **OVER)
    with pytest.raises(SecurityConfigError, match=r"^(SLUICE|OTEL)_.*: .* expired on \d{4}-\d\d-\d\d \d\d:\d\d UTC$"):
        used_by(authority.issue("us", **OVER), authority.file)


def test_what_kafka_will_be_given_at_the_next_start_is_looked_at_now(tmp_path: Path) -> None:
    authority = Authority(tmp_path, ends=YEAR)
    watched = kafka(f'{{"security.protocol": "ssl", "ssl.ca.location": "{authority.file}"}}')
    assert isinstance(watched, Watched) and watched.problem() is None
    authority.file.write_bytes(Authority(tmp_path, "next", **OVER).file.read_bytes())
    watched.look()
    assert "authority.pem expired on" in (watched.problem() or "")


@pytest.mark.parametrize(
    ("begins", "ends", "is_due"),
    [
        (-351 * DAY, 14 * DAY, True),
        (-350 * DAY, 15 * DAY, False),
        (-timedelta(hours=22), timedelta(hours=2), True),
        (-timedelta(hours=21), timedelta(hours=3), False),
    ],
)
async def test_a_service_says_for_how_long_its_certificates_count(
    tmp_path: Path, begins: timedelta, ends: timedelta, is_due: bool
) -> None:
    """By metrics, and when one is due to be replaced by its readiness."""
    pair = Authority(tmp_path, ends=YEAR).issue("server", begins=begins, ends=ends)
    settings = ServiceSettings(tls_certificate=str(pair.certificate), tls_key=str(pair.key))
    process = Process("service", settings)
    (name,) = (one.name for one in process.watched)
    assert (process.degraded[name]() is not None) == is_due
    assert not is_due or "server.pem expires on" in (process.degraded[name]() or "")
    refresh_all()
    left, renewal = (
        REGISTRY.get_sample_value(f"sluice_certificate_{each}_seconds", {"certificate": name})
        for each in ("left", "renewal")
    )
    assert left == pytest.approx(ends.total_seconds(), abs=60)
    assert renewal == pytest.approx(min((ends - begins) / 10, 14 * DAY).total_seconds(), abs=1)


def test_a_service_whose_certificate_has_expired_ends_with_status_2(authority: Authority) -> None:
    pair = authority.issue("server", **OVER)
    given = {"SLUICE_TLS_CERTIFICATE": str(pair.certificate), "SLUICE_TLS_KEY": str(pair.key)}
    command = [sys.executable, "-m", "cluster_manager"]
    environment = {**os.environ, **given, "SLUICE_HEALTH_PORT": "0"}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=STARTS_S, check=False)
    assert ended.returncode == 2
    assert "SLUICE_TLS: " in ended.stderr and "server.pem expired on" in ended.stderr
