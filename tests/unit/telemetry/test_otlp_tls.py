"""Spans to a collector behind TLS, by the settings of OpenTelemetry's SDK."""

from pathlib import Path

import pytest
from support.certificates import Authority
from support.otlp import collector
from support.wait import SOON_S

from sluice.security.tls import PROTOCOLS, watched_identity
from sluice.security.watched import SecurityConfigError
from sluice.telemetry import otlp
from sluice.telemetry.otlp import files_of_tls, otlp_tracer

CERTIFICATE = "OTEL_EXPORTER_OTLP_CERTIFICATE"


def test_spans_reach_a_collector_that_is_trusted_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # These would go before what is tried here.
    for others in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(others, raising=False)
    monkeypatch.setattr(otlp, "SHUT_DOWN_S", SOON_S)
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
    pair = authority.issue("collector")
    identity = watched_identity(str(pair.certificate), str(pair.key), PROTOCOLS[0])
    assert identity is not None
    with collector(identity.current.context) as found:
        # What is refused is tried until its time is up.
        for trusted, name, within_s in ((stranger, "unseen", 1), (authority, "seen", SOON_S)):
            monkeypatch.setattr(otlp, "EXPORT_TIMEOUT_S", within_s)
            monkeypatch.setenv(CERTIFICATE, str(trusted.file))
            tracer = otlp_tracer("service", "instance", found.endpoint)
            tracer.begin(name, "internal", {}, None, ()).end()
            tracer.shut_down()
        assert [span.name for span in found.spans] == ["seen"]


def test_a_file_of_tls_that_is_not_there_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CERTIFICATE, "/nowhere/ca.pem")
    with pytest.raises(SecurityConfigError, match=r"/nowhere/ca\.pem cannot be read"):
        files_of_tls()
