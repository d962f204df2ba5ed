"""The past on the page is that of the command line: the slider of a stream against `stream show --at`."""

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import unquote

import pytest
from page.fixtures import DEADLINE_S, Open
from page.gateway import InThread, in_thread
from page.sample_data import Size
from playwright.sync_api import Page, expect
from support.wait import eventually
from typer.testing import CliRunner, Result

from sluice.lookback.memory import BrokerSource
from sluice_cli import session
from sluice_cli.main import app

MOMENTS = 20
SEED = 21
POSITIONS = 1000
"""Of the slider."""

Show = Callable[[str], Result]


class Facts(NamedTuple):
    """What both say of a stream: the page in its head and its tab of segments, the command line in its document."""

    state: str
    epoch: int
    segments: frozenset[str]
    tags: frozenset[str]
    groups: int


@pytest.fixture(scope="module")
def small() -> Iterator[InThread]:
    with in_thread(Size(streams=0)) as served:
        yield served


@pytest.fixture
def show(small: InThread, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Show:
    """`stream show demo/orders --at …` on the topics of the gateway that the page talks to."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(session, "open_source", lambda _bootstrap: BrokerSource(small.gateway.broker))
    return lambda at: CliRunner().invoke(app, ["stream", "show", "demo/orders", "--at", at, "--json"])


def test_the_slider_shows_what_the_command_line_shows_at_chance_moments(
    small: InThread, show: Show, visit: Open
) -> None:
    opened = visit(small.url)
    page = opened.go("#/streams/demo/orders?tab=segments")
    slider = page.locator(".time-slider")
    slider.locator("summary").click()
    slider.get_by_role("button", name="1 d", exact=True).click()
    seen = set()
    for place in Random(SEED).sample(range(10, POSITIONS), MOMENTS):
        at = drag(page, place)
        expected = of_document(show(at))
        eventually(partial(shows, page, expected), DEADLINE_S, f"at {at} there is {expected}")
        seen.add(expected)
    assert len(seen) > MOMENTS // 3, "these moments are too much alike"
    opened.expected.append("404")
    slider.get_by_role("button", name="7 d", exact=True).click()
    at = drag(page, 1)
    expect(page.locator("main .state.gone")).to_be_visible()
    assert show(at).exit_code != 0


def test_a_past_moment_that_one_goes_back_to_has_no_rates_of_now(small: InThread, visit: Open) -> None:
    page = visit(small.url).go("#/streams/demo/orders?tab=segments")
    rates = page.locator(".table tbody td").filter(has_text="/s")
    shown = page.locator("header .time-choice")
    page.locator(".time-slider summary").click()
    drag(page, POSITIONS - 1)
    expect(rates).to_have_count(0)
    page.get_by_role("button", name="back to now", exact=True).click()
    expect(rates).not_to_have_count(0)
    page.go_back()
    expect(shown).to_contain_text("as of")
    expect(rates).to_have_count(0)


def drag(page: Page, place: int) -> str:
    """Move the slider to a place; the moment that the address has then."""
    before = page.url
    page.get_by_role("slider", name="Moment of").fill(str(place))
    page.wait_for_url(lambda url: url != before)
    found = re.search(r"[?&]at=([^&]+)", page.url)
    assert found is not None, page.url
    return unquote(found[1])


def of_document(shown: Result) -> Facts:
    assert shown.exit_code == 0, shown.stderr
    found = json.loads(shown.stdout)
    names = frozenset(f"{one['number']}.#epoch.{one['epoch']}" for one in found["segments"])
    tags = frozenset(found["config"]["tags"])
    return Facts(found["state"].lower(), found["epoch"], names, tags, len(found["subscribers"]))


def shows(page: Page, expected: Facts) -> bool:
    return of_page(page) == expected


def of_page(page: Page) -> Facts | None:
    """None while it shows no stream, or two moments at a time."""
    texts = page.evaluate("""() => {
        const all = (selector) => [...document.querySelectorAll(`main ${selector}`)].map((one) => one.innerText.trim());
        return {state: all('.title .badge'), tags: all('.title .tag'), line: all('.status-line'),
            segments: all('table tbody tr:not(.space) td:first-child')};
    }""")
    if not texts["state"] or not texts["line"]:
        return None
    epoch, count, groups = (
        int(found[1]) if (found := re.search(form, texts["line"][0])) is not None else -1
        for form in (r"epoch\s+(\d+)", r"(\d+)\s+segment", r"(\d+)\s+reader group")
    )
    if count != len(texts["segments"]):
        return None
    state = texts["state"][0].split()[-1]
    return Facts(state, epoch, frozenset(texts["segments"]), frozenset(texts["tags"]), groups)
