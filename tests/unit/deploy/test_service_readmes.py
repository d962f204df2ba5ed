"""The page of each service names what runs there: requests, workflows, settings."""

from pathlib import Path
from typing import get_args

import pytest

from api_gateway.settings import GatewaySettings
from cluster_manager.settings import ClusterManagerSettings
from sluice.domain.commands import Command
from sluice.domain.workflow import WorkflowKind
from sluice.kafka.topics import topics_of
from sluice.settings import ServiceSettings
from stream_workflows.settings import WorkflowSettings
from txn_manager.settings import TxnSettings

SERVICES = Path(__file__).resolve().parents[3] / "services"
SETTINGS: dict[str, type[ServiceSettings]] = {
    "api-gateway": GatewaySettings,
    "stream-workflows": WorkflowSettings,
    "txn-manager": TxnSettings,
    "cluster-manager": ClusterManagerSettings,
}
DECIDERS = ("stream-workflows", "txn-manager", "cluster-manager")


def page(service: str) -> str:
    return (SERVICES / service / "README.md").read_text()


@pytest.mark.parametrize("service", SETTINGS)
def test_the_page_of_a_service_names_all_its_settings(service: str) -> None:
    own = SETTINGS[service].__annotations__
    assert [name for name in own if f"`SLUICE_{name.upper()}`" not in page(service)] == []


@pytest.mark.parametrize("service", DECIDERS)
def test_the_page_of_a_service_names_all_requests_that_it_decides(service: str) -> None:
    decided = [kind.__name__ for kind in get_args(Command) if any(service in t.read_by for t in topics_of(kind))]
    assert decided and [name for name in decided if f"`{name}`" not in page(service)] == []


def test_every_workflow_is_named_on_the_page_of_a_service() -> None:
    pages = "".join(page(service) for service in DECIDERS)
    assert [kind for kind in WorkflowKind if f"`{kind.value}`" not in pages] == []
