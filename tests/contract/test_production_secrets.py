"""What the production overlay gives each service can be used: its settings, with files where its Secrets are."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from support.certificates import LOCAL, Authority

from api_gateway.edge.security.authentication import authentication_of
from api_gateway.settings import GatewaySettings
from cluster_manager.settings import ClusterManagerSettings
from retention_spark.settings import SparkSettings
from sluice.security.passwords import hash_password
from sluice.settings import ServiceSettings
from sluice_k8s import manifests
from stream_workflows.settings import WorkflowSettings
from txn_manager.settings import TxnSettings
from txn_manager.wheel.redis_access import redis_access

OBJECTS = manifests.objects(manifests.kept("production"))


@pytest.fixture(scope="module")
def mounted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that stands for /etc, with all Secrets in it."""
    etc, made = tmp_path_factory.mktemp("etc"), tmp_path_factory.mktemp("made")
    authority = Authority(made)
    pair = authority.issue("gateway", f"{LOCAL},DNS:api-gateway-instances.sluice.svc")
    files = {
        "sluice-tls/tls.crt": pair.certificate.read_text(),
        "sluice-tls/tls.key": pair.key.read_text(),
        "sluice-authorities/ca.crt": authority.file.read_text(),
        "sluice-accounts/passwd": f"admin:{hash_password('secret')}:prn::*,READ_UPDATE\n",
        "sluice-token/key": "k" * 64 + "\n",
        "sluice-redis/password": "secret\n",
        "sluice-kafka/kafka.json": json.dumps({"security.protocol": "ssl", "ssl.ca.location": str(authority.file)}),
    }
    for name, text in files.items():
        (etc / name).parent.mkdir(exist_ok=True)
        (etc / name).write_text(text)
    return etc


@pytest.fixture
def given(request: pytest.FixtureRequest, mounted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of the service that the test is for."""
    for name, value in environment_of(request.param).items():
        monkeypatch.setenv(name, value.replace("/etc/sluice-", f"{mounted}/sluice-"))


def environment_of(service: str) -> dict[str, str]:
    (deployment,) = [m for m in OBJECTS if m["kind"] == "Deployment" and m["metadata"]["name"] == service]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    (secret,) = [m["data"] for m in OBJECTS if m["kind"] == "Secret"]
    values: dict[str, Any] = {v["name"]: v["value"] for v in container["env"] if "value" in v}
    own = {name: value.replace("$(NAMESPACE)", manifests.NAMESPACE) for name, value in values.items()}
    from_secret = {name: base64.b64decode(value).decode() for name, value in secret.items()}
    return {**manifests.settings_of(OBJECTS), **from_secret, **own}


def for_service(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("given", [name], indirect=True)


@for_service("api-gateway")
@pytest.mark.usefixtures("given")
async def test_the_gateway_asks_who_calls_and_serves_with_tls() -> None:
    settings = GatewaySettings()
    authentication = authentication_of(settings)
    assert authentication is not None
    authentication.close()
    assert settings.identity() is not None
    assert_data_plane(settings)


@for_service("stream-workflows")
@pytest.mark.usefixtures("given")
def test_stream_workflows_shows_tokens_to_stores_that_it_knows() -> None:
    assert_data_plane(WorkflowSettings())


@for_service("txn-manager")
@pytest.mark.usefixtures("given")
def test_txn_manager_shows_tokens_and_logs_in_to_redis_with_tls() -> None:
    settings = TxnSettings()
    assert_data_plane(settings)
    access = redis_access(settings.redis_url.get_secret_value(), settings.redis_password_file)
    assert access.options.keys() == {"connection_class", "tls", "credential_provider"}


@for_service("cluster-manager")
@pytest.mark.usefixtures("given")
def test_cluster_manager_speaks_tls_to_zookeeper() -> None:
    settings = ClusterManagerSettings()
    assert settings.zookeeper_client_tls() is not None
    assert_kafka(settings)


@for_service("retention-spark")
@pytest.mark.usefixtures("given")
def test_retention_spark_has_no_more_than_kafka() -> None:
    settings = SparkSettings()
    assert_kafka(settings)
    assert not settings.store_tls and not settings.token_key_file


def assert_data_plane(settings: ServiceSettings) -> None:
    assert settings.store_client_tls() is not None
    assert settings.token_signer(lambda: 0).is_on
    assert_kafka(settings)


def assert_kafka(settings: ServiceSettings) -> None:
    assert settings.given_kafka_conf()["security.protocol"] == "ssl"
