"""A secured local system: what its parts are given, and what they are not."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer

import pytest

from sluice.settings import ServiceSettings
from sluice_local import security
from sluice_local.errors import LocalError
from sluice_local.home import HOST
from sluice_local.part import Part, StopRank
from sluice_local.parts import parts_of
from sluice_local.probes import Probe, ProbeKind
from sluice_local.settings import LocalSettings


@pytest.fixture
def secured(tmp_path: Path) -> LocalSettings:
    settings = LocalSettings(home=tmp_path, secure=True, segment_stores=2)
    security.make_once(settings)
    return settings


def secrets_of(settings: LocalSettings) -> set[str]:
    files = [*settings.security_dir.glob("*.password"), settings.security_dir / "token.key"]
    return {file.read_text() for file in files}


def parts(settings: LocalSettings) -> dict[str, Part]:
    return {part.name: part for part in parts_of(settings)}


def test_make_passes_the_switch_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not LocalSettings().secure
    monkeypatch.setenv("SECURE", "1")
    assert LocalSettings().secure


def test_without_the_switch_no_part_knows_of_security(tmp_path: Path) -> None:
    settings = LocalSettings(home=tmp_path)
    security.make_once(settings)
    assert not settings.security_dir.exists()
    assert str(settings.security_dir) not in str([asdict(part) for part in parts_of(settings)])
    assert security.how_to_connect(settings) == ""


EXPORTED = {
    "SLUICE_KAFKA_CONF": ".sluice/security/kafka.json",
    "SLUICE_STORE_TLS": "true",
    "SLUICE_STORE_TLS_AUTHORITIES": ".sluice/security/ca.pem",
    "SLUICE_TOKEN_KEY_FILE": ".sluice/security/token.key",
}
"""What README has the user of a secured system export for the command line."""


def test_an_open_system_does_not_inherit_what_a_secured_one_had_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = [part for part in parts_of(LocalSettings(home=tmp_path)) if part.stop_rank is StopRank.SERVICE]
    for part in services:
        for name, value in {**EXPORTED, **part.environment}.items():
            monkeypatch.setenv(name, value)
        secured = {"listens": "plain", "segment_stores": "plain", "tokens": "none", "kafka": "plain"}
        assert ServiceSettings().security() == secured, part.name
    assert len(services) == 5


def test_what_is_not_embedded_is_reached_as_the_environment_says(tmp_path: Path) -> None:
    settings = LocalSettings(
        home=tmp_path, kafka_bootstrap="k:9092", redis_url="redis://r:6379/0", zookeeper="z:2181", segment_stores=0
    )
    for name, part in parts(settings).items():
        assert not {*EXPORTED, "SLUICE_ZOOKEEPER_TLS", "SLUICE_REDIS_PASSWORD_FILE"} & set(part.environment), name


def test_no_secret_is_on_a_command_line_or_outside_of_the_folder(secured: LocalSettings) -> None:
    shown = [str((part.command, part.files, part.address, part.probe)) for part in parts_of(secured)]
    shown.append(security.how_to_connect(secured))
    assert [secret for secret in secrets_of(secured) if any(secret in text for text in shown)] == []


def test_what_was_made_once_is_kept(secured: LocalSettings) -> None:
    before = secrets_of(secured)
    security.make_once(secured)
    assert secrets_of(secured) == before


def test_a_folder_that_was_half_made_is_named(tmp_path: Path) -> None:
    settings = LocalSettings(home=tmp_path, secure=True)
    settings.security_dir.mkdir()
    (settings.security_dir / "ca.pem").touch()
    with pytest.raises(LocalError, match=r"has ca\.pem already"):
        security.make_once(settings)


def test_a_secured_system_has_data_of_its_own(secured: LocalSettings) -> None:
    open_one = LocalSettings(home=secured.home)
    assert secured.data_dir != open_one.data_dir
    assert {part.folder for part in parts_of(secured)}.isdisjoint(part.folder for part in parts_of(open_one))


def test_no_listener_of_kafka_and_zookeeper_is_open(secured: LocalSettings) -> None:
    found = parts(secured)
    kafka, zookeeper = (next(iter(found[name].files.values())) for name in ("kafka", "zookeeper"))
    assert "PLAINTEXT" not in kafka and "listener.name.controller.ssl.client.auth=required" in kafka
    assert "\nclientPort=" not in zookeeper and "\nsecureClientPort=2181\n" in zookeeper


def test_an_embedded_part_that_is_not_there_is_not_secured(tmp_path: Path) -> None:
    redis = "redis://r:6379/0"
    settings = LocalSettings(home=tmp_path, secure=True, kafka_bootstrap="k:9092", redis_url=redis, zookeeper="z:2181")
    security.make_once(settings)
    found = parts(settings)
    assert "SLUICE_KAFKA_CONF" not in found["txn-manager-0"].environment
    assert found["txn-manager-0"].environment["SLUICE_REDIS_URL"] == redis
    assert not any("zookeeper.client.secure" in option for option in found["bookie"].command)
    properties = next(text for path, text in found["segment-store-0"].files.items() if path.suffix == ".properties")
    assert "pravegaservice.zk.connect.security.enable=false\n" in properties


def test_services_listen_to_those_who_prove_who_they_are(secured: LocalSettings) -> None:
    gateway = parts(secured)["api-gateway-0"]
    assert gateway.environment["SLUICE_AUTH_ENABLED"] == "true"
    assert gateway.environment["SLUICE_GRPC_PUBLISHED_HOST"] == "localhost"
    assert gateway.address == "tls://localhost:9090, page https://localhost:10090/ui/"


def test_only_what_clients_connect_to_shows_the_certificate_of_a_site(secured: LocalSettings) -> None:
    site = secured.model_copy(update={"grpc_published_host": "host.example.com"})
    (site.security_dir / security.SITE.certificate).touch()
    showing = {name for name, part in parts(site).items() if f"{site.security_dir}/site.pem" in str(asdict(part))}
    assert showing == {"api-gateway-0", "segment-store-0", "segment-store-1"}
    gateway = f"tls://host.example.com:{site.grpc_port}"
    assert f"{gateway}; authority {site.security_dir}/site-ca.pem\n" in security.how_to_connect(site)


def test_an_open_system_is_published_by_the_name_that_is_given(tmp_path: Path) -> None:
    settings = LocalSettings(home=tmp_path, grpc_published_host="host.example.com")
    assert parts(settings)["api-gateway-0"].address.startswith("grpc host.example.com:9090, ")
    store = parts(settings)["segment-store-0"]
    assert store.address == "host.example.com:12345"
    assert "listener.host.nameOrIp=127.0.0.1\n" in str(next(iter(store.files.values())))


class Ready(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"not_ready": {}, "outage": {}, "degraded": {}}')

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def serving(handler: type[BaseRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[int]:
    """A server on the port that is given."""
    with TCPServer((HOST, 0), handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_a_service_with_tls_is_ready_to_who_knows_its_authority(secured: LocalSettings, tmp_path: Path) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(secured.security_dir / "server-pair.pem")
    stranger = LocalSettings(home=tmp_path / "other", secure=True)
    security.make_once(stranger)
    with serving(Ready, context) as port:
        assert Probe(ProbeKind.SERVICE, port, security.authority(secured)).look() == (True, "")
        other = Probe(ProbeKind.SERVICE, port, security.authority(stranger)).look()
    assert not other.ready and other.remark.startswith(f"https://localhost:{port}/readyz: ")


def test_redis_is_ready_to_who_has_its_password(secured: LocalSettings) -> None:
    password = (secured.security_dir / "redis.password").read_bytes()

    class Redis(BaseRequestHandler):
        def handle(self) -> None:
            right = self.request.recv(1000) == b"AUTH %b\r\nPING\r\n" % password
            self.request.sendall(b"+OK\r\n+PONG\r\n" if right else b"-NOAUTH Authentication required.\r\n")

    with serving(Redis) as port:
        assert Probe(ProbeKind.REDIS, port, credentials=security.redis_password(secured)).look().ready
        assert not Probe(ProbeKind.REDIS, port).look().ready
