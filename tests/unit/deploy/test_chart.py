"""The Helm chart: made of the manifests as they are now, and its values are what their schema says.

`make k8s-check` compares what helm makes of it with what kustomize makes.
"""

import json
import re
import tomllib

import jsonschema
import pytest
import yaml

from sluice_k8s import chart, manifests

VALUES = yaml.safe_load((chart.CHART / "values.yaml").read_text())
SCHEMA = json.loads((chart.CHART / "values.schema.json").read_text())


def test_the_chart_is_made_of_the_manifests_as_they_are() -> None:
    assert chart.is_current(), "run `make k8s-render`"


def test_the_chart_has_the_version_of_the_distributions() -> None:
    described = yaml.safe_load((chart.CHART / "Chart.yaml").read_text())
    shared = tomllib.loads((manifests.FOLDER.parents[1] / "shared" / "pyproject.toml").read_text())
    assert {described["version"], described["appVersion"], VALUES["image"]["version"]} == {shared["project"]["version"]}


def test_the_values_are_what_their_schema_says() -> None:
    jsonschema.validate(VALUES, SCHEMA)


@pytest.mark.parametrize(
    "other",
    [
        {"componets": {}},
        {"components": {**VALUES["components"], "scalling": True}},
        {"settings": {**VALUES["settings"], "PARTITIONS": 16}},
        {"image": {**VALUES["image"], "version": None}},
    ],
)
def test_a_value_that_is_none_is_refused(other: dict[str, object]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**VALUES, **other}, SCHEMA)


def test_every_value_is_used_and_every_one_used_is_there() -> None:
    text = "".join(path.read_text() for path in (chart.CHART / "templates").rglob("*.yaml"))
    used = set(re.findall(r"\.Values\.(\w+)", text))
    assert used == set(VALUES)
    assert set(re.findall(r"\.Values\.components\.(\w+)", text)) == set(VALUES["components"])


def test_every_component_can_be_chosen() -> None:
    folders = {path.name for path in (manifests.FOLDER / "components").iterdir()}
    assert set(chart.COMPONENTS.values()) == folders
