"""What operators rely on by name: the page on metrics, the dashboard and the alerts name what the code has."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from unit.telemetry.catalogue import OF_PROMETHEUS, TARGET_LABELS, declared, samples
from unit.telemetry.promql import PromQLError, metrics_of

CLONE = Path(__file__).resolve().parents[3]
PAGE = CLONE / "docs" / "telemetry.md"
DASHBOARD = json.loads((CLONE / "deploy/observability/grafana/sluice.json").read_text())
RULES = yaml.safe_load((CLONE / "deploy/observability/alerts.yaml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
DOCS_ADDRESS = "https://git.example.com/sluice/blob/v0.1.0/docs"
"""Of all alike, so that one replacement has them link to where a site has the pages."""
DURATION = re.compile(r"\d+[smhd]")
EXPOSED_NAME = re.compile(r"sluice_[a-z0-9]+(_[a-z0-9]+)*")


def panels() -> Iterator[dict[str, Any]]:
    for panel in DASHBOARD["panels"]:
        yield panel
        yield from panel.get("panels", ())


def expressions() -> list[str]:
    expressions = [target["expr"] for panel in panels() for target in panel.get("targets", ())]
    return [*expressions, *(rule["expr"] for rule in ALERTS)]


def test_names_follow_the_conventions_of_prometheus() -> None:
    every = [each for some in declared().values() for each in some]
    assert len(every) == len({each.name for each in every}) > 60
    for each in every:
        assert EXPOSED_NAME.fullmatch(each.name), each
        assert (each.kind == "counter") == each.name.endswith("_total"), each
        assert each.help and not each.help.endswith("."), each
        assert not TARGET_LABELS & set(each.labels), f"{each}: Prometheus sets that label itself"


def test_the_page_lists_exactly_the_metrics_there_are() -> None:
    page = PAGE.read_text()
    for service, metrics in declared().items():
        section = page.partition(f"\n### {service}\n")[2].partition("\n#")[0]
        assert items(section) == [item_of(each) for each in metrics], service
    assert len(items(page)) == sum(map(len, declared().values()))


def items(text: str) -> list[str]:
    """The items of lists that begin with the name of a metric, each on one line."""
    found = re.findall(r"^- `sluice_\w+`(?: \([\w, \n]+\))?: .*?(?=^- |\n\n|\Z)", text, re.DOTALL | re.MULTILINE)
    return [" ".join(item.split()) for item in found]


def item_of(metric: Any) -> str:
    labels = f" ({', '.join(metric.labels)})" if metric.labels else ""
    return f"- `{metric.name}`{labels}: {metric.help}"


@pytest.mark.parametrize("severity", ["critical", "warning"])
def test_the_page_names_every_alert(severity: str) -> None:
    listed = re.findall(
        r"`(Sluice\w+)`", PAGE.read_text().partition(f"**{severity.capitalize()}**: ")[2].partition(".\n")[0]
    )
    assert listed == [rule["alert"] for rule in ALERTS if rule["labels"]["severity"] == severity]


def test_panels_have_ids_of_their_own_and_ask_something() -> None:
    ids = Counter(panel["id"] for panel in panels())
    assert len(ids) > 50 and set(ids.values()) == {1}
    for panel in panels():
        assert panel["title"]
        assert panel["type"] == "row" or (panel["targets"] and panel["description"]), panel["title"]
    assert len({panel["title"] for panel in panels()}) == len(ids)


def test_panels_do_not_cover_each_other() -> None:
    cells: Counter[tuple[int, int]] = Counter()
    for panel in panels():
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24, panel["title"]
        cells.update((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"]))
    assert set(cells.values()) == {1}


def test_every_expression_is_about_metrics_that_exist() -> None:
    used = {name for each in expressions() for name in metrics_of(each, samples(), TARGET_LABELS)}
    assert set(OF_PROMETHEUS) <= used, "kept in step with what is used"


def test_the_dashboard_shows_every_metric() -> None:
    shown = {name for each in expressions() for name in metrics_of(each, samples(), TARGET_LABELS)}
    for each in (d for some in declared().values() for d in some):
        names = {each.name, each.name + "_bucket", each.name + "_count"}
        assert names & shown, each.name


def test_alerts_have_the_shape_of_prometheus_rules() -> None:
    assert set(RULES) == {"groups"}
    assert len({group["name"] for group in RULES["groups"]}) == len(RULES["groups"])
    assert len({rule["alert"] for rule in ALERTS}) == len(ALERTS) > 20
    for rule in ALERTS:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}, rule["alert"]
        assert rule["labels"] == {"severity": rule["labels"]["severity"]}
        assert rule["labels"]["severity"] in ("critical", "warning"), rule["alert"]
        assert "for" not in rule or DURATION.fullmatch(rule["for"]), rule["alert"]


def test_alerts_say_what_is_seen_what_it_means_and_where_to_read_on() -> None:
    for rule in ALERTS:
        notes = rule["annotations"]
        assert set(notes) == {"summary", "description", "runbook_url"}, rule["alert"]
        assert len(notes["description"]) > 60, rule["alert"]
        assert notes["runbook_url"] == f"{DOCS_ADDRESS}/operations.md#{rule['alert'].lower()}"


def test_alerts_use_labels_that_their_expression_leaves() -> None:
    for rule in ALERTS:
        named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        kept = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", rule["expr"])))) - {"le"}
        kept |= set(re.findall(r"absent\(\w+\{(\w+)=\"", rule["expr"]))
        plain = "by (" not in rule["expr"] and "sum(" not in rule["expr"]
        assert named <= (kept | (TARGET_LABELS if plain else set())), rule["alert"]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("sum(rate(sluice_rpc_seconds_count[5m])", "unclosed"),
        ("rates(sluice_rpc_seconds_count[5m])", "unknown function"),
        ("rate(sluice_rpc_seconds_count)", "expected type matrix"),
        ("sluice_rpc_second_count > 1", "no metric"),
        ("sum by (rcp) (sluice_rpc_seconds_count)", "no labels"),
        ('sluice_open_records{topics="x"}', "no labels"),
        ("sluice_open_records > on (topics) sluice_open_records", "no labels"),
        ("rate(sluice_open_records[5m])", "no counter"),
        ("vector(1)", "about no metric"),
    ],
)
def test_the_check_of_expressions_finds_mistakes(wrong: str, why: str) -> None:
    with pytest.raises(PromQLError, match=why):
        metrics_of(wrong, samples(), TARGET_LABELS)
