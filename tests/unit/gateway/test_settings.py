"""The addresses that the gateway publishes."""

import pytest

from api_gateway.settings import GatewaySettings


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GRPC_PORT", "GRPC_PUBLISHED_HOST", "GRPC_PUBLISHED_PORT", "HEALTH_PORT"):
        monkeypatch.delenv(f"SLUICE_{name}", raising=False)


def test_without_settings_it_is_where_clients_look() -> None:
    assert GatewaySettings().grpc_endpoint == "127.0.0.1:9090"
    assert GatewaySettings().rest_endpoint == "127.0.0.1:10080"


def test_the_published_port_is_the_one_listened_on_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_GRPC_PORT", "9191")
    monkeypatch.setenv("SLUICE_GRPC_PUBLISHED_HOST", "sluice.example")
    assert GatewaySettings().grpc_endpoint == "sluice.example:9191"
    monkeypatch.setenv("SLUICE_GRPC_PUBLISHED_PORT", "443")
    assert GatewaySettings().grpc_endpoint == "sluice.example:443"
