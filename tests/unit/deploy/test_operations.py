"""The guide for operators: what alerts and links point to is there, and what it names exists."""

import re
from pathlib import Path

import yaml

from api_gateway.settings import GatewaySettings
from cluster_manager.settings import ClusterManagerSettings
from retention_spark.settings import SparkSettings
from sluice_cli.addresses import VARIABLES
from sluice_k8s import manifests
from sluice_local.settings import LocalSettings
from stream_workflows.settings import WorkflowSettings
from txn_manager.settings import TxnSettings

CLONE = Path(__file__).resolve().parents[3]
DOCS = CLONE / "docs"
GUIDE = (DOCS / "operations.md").read_text()
SETTINGS = (GatewaySettings, ClusterManagerSettings, SparkSettings, LocalSettings, WorkflowSettings, TxnSettings)


def anchors(text: str) -> set[str]:
    """The anchors that GitHub makes of headings."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_alert_has_its_heading() -> None:
    groups = yaml.safe_load((CLONE / "deploy" / "observability" / "alerts.yaml").read_text())["groups"]
    alerts = {rule["alert"] for group in groups for rule in group["rules"] if "alert" in rule}
    assert alerts
    assert {alert.lower() for alert in alerts} <= anchors(GUIDE)
    assert set(re.findall(r"^### (Sluice\w+)$", GUIDE, re.MULTILINE)) <= alerts


def test_every_setting_it_names_exists() -> None:
    known = {f"SLUICE_{field.upper()}" for settings in SETTINGS for field in settings.model_fields} | set(
        VARIABLES.values()
    )
    assert set(re.findall(r"\bSLUICE_[A-Z_]+\b", GUIDE)) <= known


def test_every_file_and_target_it_names_exists() -> None:
    for path in re.findall(r"`(deploy/[\w./-]+)`", GUIDE):
        assert (CLONE / path).exists(), path
    targets = set(re.findall(r"^([a-z0-9-]+):", (CLONE / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z0-9-]+)`", GUIDE)) <= targets


def test_the_lines_that_load_images_name_all_that_the_dev_overlay_runs() -> None:
    dev = CLONE / "deploy" / "k8s" / "overlays" / "dev" / "kustomization.yaml"
    images = {
        container["image"]
        for _, pod in manifests.pods(manifests.objects(manifests.kept("dev")))
        for container in manifests.containers(pod)
    }
    for text in (GUIDE, dev.read_text()):
        (names,) = re.findall(r"for image in ([\w -]+); do", text)
        (tag,) = set(re.findall(r"sluice/\$image:([\w.]+)", text))
        assert {f"sluice/{name}:{tag}" for name in names.split()} == {i for i in images if i.startswith("sluice/")}
