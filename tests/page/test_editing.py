"""Changes by the page: numbers keep their digits, and of two editors one learns of the other."""

import re

from page.fixtures import Open, Visit
from page.gateway import InThread
from page.sample_data import UNLIMITED
from playwright.sync_api import expect

from sluice_cli.policies import retention_of, scaling_of

CARTS = "scopes/shop/streams/carts"


def edit(opened: Visit, tag: str) -> None:
    """Begin to edit the configuration, and add a tag."""
    page = opened.go("#/streams/shop/carts?tab=configuration")
    page.get_by_role("button", name="Edit").click()
    tags = page.get_by_label("Tags, one a line")
    tags.fill(f"{tags.input_value()}\n{tag}")


def apply(opened: Visit) -> None:
    opened.page.get_by_role("button", name="Apply…").click()
    opened.page.get_by_role("dialog").get_by_role("button", name="Apply", exact=True).click()


def test_unlimited_retention_stays_unlimited_after_an_edit(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    edit(opened, "edited")
    apply(opened)
    expect(opened.page.get_by_role("dialog").get_by_text("Done.")).to_be_visible()
    config = sample.call("GET", CARTS).json()["config"]
    assert "edited" in config["tags"]
    assert config["retention"]["max"] == UNLIMITED


def test_of_two_editors_the_second_is_refused_and_shown_both(sample: InThread, visit: Open) -> None:
    first, second = visit(sample.url), visit(sample.url)
    edit(first, "first")
    edit(second, "second")
    apply(first)
    expect(first.page.get_by_role("dialog").get_by_text("Done.")).to_be_visible()
    second.expected = ["412"]
    second.page.get_by_role("button", name="Apply…").click()
    dialog = second.page.get_by_role("dialog")
    expect(dialog.get_by_text("Changed meanwhile by another caller.")).to_be_visible()
    expect(dialog.get_by_role("table").get_by_text("first")).to_be_visible()
    expect(dialog.get_by_role("button", name="Apply", exact=True)).to_be_disabled()
    tags = sample.call("GET", CARTS).json()["config"]["tags"]
    assert "first" in tags and "second" not in tags


def test_the_command_that_does_the_same_is_one(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    edit(opened, "by-hand")
    opened.page.get_by_role("button", name="Apply…").click()
    dialog = opened.page.get_by_role("dialog")
    expect(dialog).to_contain_text("sluice stream update shop/carts")
    shown = dialog.text_content() or ""
    given = dict(re.findall(r"--([a-z-]+) ([^\s]+)", shown))
    config = sample.call("GET", CARTS).json()["config"]
    scaling = scaling_of(None, given["scale"], int(given["factor"]), int(given["min"]))
    assert {**config["scaling"], **scaling} == config["scaling"]
    assert retention_of(given["retain"]) == config["retention"]
    assert {"rollover", "writer-timeout"} <= given.keys()
