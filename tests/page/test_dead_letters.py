"""Dead letters: which of a group are still open, those that an address names, and those behind the first page."""

from collections.abc import Iterator

import httpx
import pytest
from page.fixtures import Open
from page.gateway import InThread, PageGateway, in_thread
from page.sample_data import Size
from playwright.sync_api import expect

OLD = "an old one"
COUNT = 130
"""More than a page has."""


@pytest.fixture(scope="module")
def sample() -> Iterator[InThread]:
    """One of its own: its letters are settled."""
    with in_thread(Size(streams=0)) as served:
        yield served


@pytest.fixture(scope="module")
def many() -> Iterator[tuple[InThread, str, str]]:
    """A system with many letters; where the oldest one stands, and the latest."""

    def write(gateway: PageGateway) -> list[str]:
        letter = gateway.world.letters.letter
        found = [letter("demo/orders", b"{}", reason=OLD)]
        found += [letter("demo/orders", b"{}", reason="like many") for _ in range(COUNT - 1)]
        return [f"{partition}/{offset}" for partition, offset in found]

    with in_thread() as served:
        keys = served.do(write)
        yield served, keys[0], keys[-1]


def test_what_is_left_of_a_group_can_be_dropped_after_a_part_was(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    page = opened.go("#/dead-letters")
    group = page.locator("details.letters").filter(has_text="no such type")
    group.locator("summary").click()
    for place in (0, 1):
        group.get_by_role("checkbox").nth(place).check()
    group.get_by_role("button", name="Drop 2 chosen").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("textbox").fill("2 letters")
    dialog.get_by_role("button", name="Drop", exact=True).click()
    expect(dialog).to_contain_text("2 of 2 dropped.")
    dialog.get_by_role("button", name="Close").click()
    expect(group.get_by_role("button", name="Drop all 4")).to_be_visible()


def test_older_letters_stay_when_the_first_page_changes(many: tuple[InThread, str, str], visit: Open) -> None:
    served, _oldest, latest = many
    page = visit(served.url).go("#/dead-letters")
    title = page.locator("main .title")
    expect(title).to_contain_text("100+ in 1 group")
    page.get_by_role("button", name="Older ones").click()
    expect(title).to_contain_text(f"{COUNT} in 2 groups")
    page.locator("li.letter").filter(has_text=latest).get_by_role("button", name="Drop").click()
    page.get_by_role("dialog").get_by_role("textbox").fill(latest)
    page.get_by_role("dialog").get_by_role("button", name="Drop", exact=True).click()
    expect(title).to_contain_text(f"{COUNT - 1} in 2 groups")
    expect(page.locator("main")).to_contain_text(OLD)


def test_the_letter_that_an_address_names_is_shown_old_or_settled(many: tuple[InThread, str, str], visit: Open) -> None:
    served, oldest, _latest = many
    opened = visit(served.url)
    route = f"#/dead-letters?letter={oldest}"
    panel = opened.go(route).locator(".panel").filter(has=opened.page.get_by_role("heading", name=oldest))
    expect(panel).to_contain_text(OLD)
    assert httpx.post(f"{served.origin}/sluice/v1/dead-letters/{oldest}/drop").status_code == 200
    opened.page.reload()
    expect(panel.locator(".badge")).to_contain_text("dropped")
    opened.expected = ["404"]
    opened.go("#/dead-letters?letter=0/999999")
    expect(opened.page.locator("main .state.gone")).to_be_visible()
