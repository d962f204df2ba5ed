"""`sluice config explain`."""

from pathlib import Path

import pytest
from unit.cli.conftest import Cli

FILE = """\
controller.transaction.lease.count.max=900000
controller.zk.connect.uri=theirs:2181
controller.security.auth.enable=yes
controller.security.auth.delegationToken.signingKey.basis=hidden
controller.security.tls.server.certificate.location=/cert
controller.retention.bucket.count=10
controller.metrics.statistics.enable=true
controller.colour=blue
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "controller.config.properties"
    file.write_text(FILE)
    return file


def test_each_setting_of_pravega_is_explained(cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_ZOOKEEPER", "ours:2181")
    monkeypatch.setenv("SLUICE_PRAVEGA_CONFIG", str(file))
    found = {one["property"].removeprefix("controller."): one for one in cli("config", "explain", "--json").document}
    assert {name: (one["fate"], one["setting"], one["value"]) for name, one in found.items()} == {
        "transaction.lease.count.max": ("kept", "SLUICE_MAX_LEASE_S", "900"),
        "zk.connect.uri": ("overridden", "SLUICE_ZOOKEEPER", "theirs:2181"),
        "security.auth.enable": ("kept", "SLUICE_AUTH_ENABLED", "true"),
        "security.auth.delegationToken.signingKey.basis": ("kept", "SLUICE_TOKEN_KEY", "(secret)"),
        "security.tls.server.certificate.location": ("not used", "SLUICE_TLS_CERTIFICATE", "/cert"),
        "retention.bucket.count": ("not needed", "", "10"),
        "metrics.statistics.enable": ("not needed", "", "true"),
        "colour": ("unknown", "", "blue"),
    }


def test_what_cannot_be_kept_ends_the_explanation_with_1_and_no_secret_is_shown(cli: Cli, file: Path) -> None:
    shown = cli("config", "explain", file, "--java-options", "-Dcontroller.hostMonitor.enable=false")
    assert shown.code == 1 and "1 of them cannot be kept" in shown.err
    assert "controller.hostMonitor.enable" in shown.out and "hidden" not in shown.out + shown.err


def test_without_settings_of_pravega_there_is_nothing_to_explain(cli: Cli, file: Path) -> None:
    assert cli("config", "explain").code == 2
    missing = cli("config", "explain", file.with_name("absent"))
    assert missing.code == 1 and "cannot be read" in missing.err
