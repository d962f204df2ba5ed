"""The settings of Pravega's controller: what a service makes of them."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.certificates import Authority

from api_gateway.settings import GatewaySettings
from cluster_manager.settings import ClusterManagerSettings
from sluice.pravega_config.properties import parsed
from sluice.pravega_config.table import RULES
from sluice.settings import ServiceSettings, settings_of
from stream_workflows.settings import WorkflowSettings
from txn_manager.settings import TxnSettings

DOCS = Path(__file__).parents[2] / "docs" / "pravega-settings.md"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Writes the file of properties that services read; names are without `controller.`."""

    def write(**properties: str) -> Path:
        file = tmp_path / "controller.config.properties"
        file.write_text("".join(f"controller.{name}={value}\n" for name, value in properties.items()))
        monkeypatch.setenv("SLUICE_PRAVEGA_CONFIG", str(file))
        return file

    return write


def refused(kind: type[ServiceSettings], capsys: pytest.CaptureFixture[str]) -> str:
    """What a service says that does not start."""
    with pytest.raises(SystemExit) as ended:
        settings_of(kind)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=b", {"a": "b"}),
        ("  a : b c ", {"a": "b c "}),
        ("a b\n#c=d\n! e=f\n\ng", {"a": "b", "g": ""}),
        ("a=b,\\\n   c\nd=\\\\\ne=f", {"a": "b,c", "d": "\\", "e": "f"}),
        ("a\\ b=\\u00e4\\t\\:", {"a b": "ä\t:"}),
        ("a=b=c", {"a": "b=c"}),
    ],
)
def test_files_are_read_as_java_reads_them(text: str, found: dict[str, str]) -> None:
    assert dict(parsed(text)) == found


def test_settings_reach_the_services_that_have_them(write: Write) -> None:
    write(
        **{
            "cluster.name": "prod",
            "container.count": "16",
            "zk.connect.uri": "zk1:2181,zk2:2181",
            "zk.connect.session.timeout.milliseconds": "15000",
            "service.rpc.listener.port": "9999",
            "service.rpc.published.host.nameOrIp": "pravega.example.org",
            "service.rest.listener.host.ip": "0.0.0.0",
            "service.rest.listener.port": "9091",
            "transaction.lease.count.min": "20000",
            "transaction.lease.count.max": "86400000",
            "transaction.execution.timeBound.days": "7",
            "watermarking.frequency.seconds": "5",
            "retention.frequency.minutes": "10",
        }
    )
    gateway, txn, cluster = GatewaySettings(), TxnSettings(), ClusterManagerSettings()
    assert (gateway.grpc_port, gateway.health_port, gateway.host) == (9999, 9091, "0.0.0.0")
    assert (gateway.grpc_published_host, gateway.retention_pause_s) == ("pravega.example.org", 600)
    assert (txn.health_port, txn.host) == tuple(
        ServiceSettings.model_fields[n].default for n in ("health_port", "host")
    )
    assert (txn.min_lease_s, txn.max_lease_s, txn.max_transaction_life_s) == (10, 86400, 7 * 86400)
    assert txn.limits.max_lease_ms == 86_400_000
    assert (cluster.zookeeper, cluster.zookeeper_session_timeout_s) == ("zk1:2181,zk2:2181", 15)
    assert (cluster.cluster_name, cluster.container_count) == ("prod", 16)
    assert WorkflowSettings().watermark_interval_s == 5


def test_what_counts_more_is_what_counts_more_in_the_original(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file, the environment, system properties; an old name before a new one; and ours before all of them."""
    write(**{"cluster.name": "${NAME}", "container.count": "${NONE}", "zk.connect.uri": "file:1", "zkURL": "old:1"})
    monkeypatch.setenv("NAME", "by-reference")
    assert (ServiceSettings().cluster_name, ServiceSettings().container_count) == ("by-reference", 4)
    assert ServiceSettings().zookeeper == "old:1"
    monkeypatch.setenv("controller.cluster.name", "environment")
    assert ServiceSettings().cluster_name == "environment"
    monkeypatch.setenv("SLUICE_PRAVEGA_OPTIONS", "-Xmx1g '-Dcontroller.cluster.name=a system property' -Dother=1")
    assert ServiceSettings().cluster_name == "a system property"
    monkeypatch.setenv("SLUICE_CLUSTER_NAME", "ours")
    assert ServiceSettings().cluster_name == "ours"


def test_security_is_as_on_the_original(write: Write, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("server")
    properties = {
        "security.auth.enable": "true",
        "security.pwdAuthHandler.accountsDb.location": "/etc/passwd",
        "security.auth.delegationToken.signingKey.basis": "a key",
        "security.tls.enable": "true",
        "security.tls.protocolVersion": "TLSv1.2, TLSv1.3",
        "security.tls.server.certificate.location": str(pair.certificate),
        "security.tls.server.privateKey.location": str(pair.key),
        "security.tls.trustStore.location": str(authority.file),
        "zk.connect.security.enable": "true",
        "zk.connect.security.tls.trustStore.location": str(authority.file),
    }
    write(**properties)
    gateway, cluster = GatewaySettings(), ClusterManagerSettings()
    assert (gateway.auth_enabled, gateway.auth_accounts) == (True, "/etc/passwd")
    assert gateway.token_key.get_secret_value() == "a key"
    assert gateway.identity() is not None and gateway.store_client_tls() is not None
    assert cluster.zookeeper_client_tls() is not None
    write(**properties, **{"segmentstore.connect.channel.tls": "no"})
    assert (GatewaySettings().store_tls, GatewaySettings().store_tls_authorities) == (False, "")
    write(**{**properties, "security.auth.enable": "false", "security.tls.enable": "false"})
    off = GatewaySettings()
    assert (off.auth_enabled, off.token_key.get_secret_value(), off.tls_certificate, off.store_tls) == (
        False,
        "",
        "",
        False,
    )


def key_store_of(pair: Any, tmp_path: Path) -> dict[str, str]:
    """Certificate, key and key store of the original, with TLS on. The store holds `pair`, as PEM."""
    store = tmp_path / "store"
    store.write_bytes(pair.certificate.read_bytes())
    return {"security.tls.server.keyStore.location": str(store), "security.tls.enable": "true"}


def test_a_key_store_must_hold_the_certificate_that_grpc_shows(
    write: Write, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    one, other = authority.issue("one"), authority.issue("other")
    pem = {
        "security.tls.server.certificate.location": str(one.certificate),
        "security.tls.server.privateKey.location": str(one.key),
    }
    write(**pem, **key_store_of(one, tmp_path))
    assert settings_of(GatewaySettings).tls_certificate == str(one.certificate)
    write(**pem, **key_store_of(other, tmp_path))
    assert "it is another certificate than" in refused(GatewaySettings, capsys)
    assert settings_of(TxnSettings).tls_certificate, "it serves no REST"
    monkeypatch.setenv("SLUICE_TLS_CERTIFICATE", str(one.certificate))
    assert settings_of(GatewaySettings).tls_certificate == str(one.certificate)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("hostMonitor.enable", "false", "which store runs which container is always decided here"),
        ("scale.request.stream.name", "mine", "_system/_requeststream"),
        ("security.tls.enable", "true", "the original would serve without TLS"),
        ("security.tls.enable", "treu", "it must be true or false"),
        ("container.count", "four", "it must be a whole number"),
        ("security.auth.enable", "maybe", "it must be true or false"),
        ("transaction.lease.count.max", "2592000001", "it must be at most 2592000000"),
        ("security.auth.delegationToken.ttl.seconds", "long", "it must be a whole number"),
    ],
)
def test_what_matters_and_cannot_be_kept_keeps_a_service_from_starting(
    write: Write, capsys: pytest.CaptureFixture[str], name: str, value: str, why: str
) -> None:
    write(**{name: value})
    said = refused(GatewaySettings if name != "transaction.lease.count.max" else TxnSettings, capsys)
    assert why in said


def test_every_setting_of_the_original_is_in_the_docs_with_what_it_becomes() -> None:
    name = r"`([\w.]+)`(?:\s\(`([\w.]+)`\))?"
    page = DOCS.read_text()
    items = re.findall(rf"^- {name}:\s(.*?)(?=^- |\n\n)", page, re.DOTALL | re.MULTILINE)
    not_needed = re.findall(name, page.partition("Not needed: ")[2].partition(".\n")[0])
    documented = {new: (old, becomes) for new, old, becomes in items} | {new: (old, "") for new, old in not_needed}
    assert documented.keys() == RULES.keys()
    for name, (old, rule) in RULES.items():
        setting = getattr(rule, "setting", "")
        assert old == documented[name][0], name
        assert not setting or f"`SLUICE_{setting.upper()}`" in documented[name][1], name
