"""Dead letters: which of a group are still open, those that an address names, and those behind the first page."""

from collections.abc import Iterator

import pytest
from page.fixtures import Open
from page.gateway import InThread, PageGateway, in_thread
from page.sample_data import Size
from playwright.sync_api import expect

from api_gateway.console import overview
from sluice.domain.scope.commands import CreateScope
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import REQUESTS_STREAMS

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


def test_a_letter_that_comes_when_another_goes_is_listed(
    sample: InThread, visit: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "LETTERS_S", 0.5)
    letter = sample.do(lambda gateway: gateway.world.letters.letter)
    partition, offset = sample.do(lambda _: letter("demo/orders", b"{}", reason="goes"))
    page = visit(sample.url).go("#/dead-letters")
    listed = page.locator("main")
    expect(listed).to_contain_text("goes")
    # As after a replay in vain: there are as many as before.
    sample.do(lambda _: letter("demo/orders", b"{}", reason="comes"))
    assert sample.call("POST", f"dead-letters/{partition}/{offset}/drop").status_code == 200
    expect(listed).not_to_contain_text("goes")
    expect(listed).to_contain_text("comes")


def test_letters_are_replayed_one_by_one_by_a_browser_whose_clock_is_ahead(sample: InThread, visit: Open) -> None:
    def write(gateway: PageGateway) -> None:
        for number in range(2):
            command = CreateScope(f"replayed-{number}")
            request = encode_request(Request(f"vain-{number}", gateway.broker.now_ms(), "a", command))
            gateway.world.letters.letter(command.key, request, REQUESTS_STREAMS.name, "in vain")

    sample.do(write)
    opened = visit(sample.url)
    opened.page.add_init_script("Date.now = ((real) => () => real() + 3_600_000)(Date.now)")
    page = opened.go("#/dead-letters")
    group = page.locator("details.letters").filter(has_text="in vain")
    if group.get_attribute("open") is None:
        group.locator("summary").click()
    group.get_by_role("button", name="Replay all 2").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Replay", exact=True).click()
    expect(dialog).to_contain_text("2 of 2 sent.")


def test_the_letter_that_an_address_names_is_shown_old_or_settled(many: tuple[InThread, str, str], visit: Open) -> None:
    served, oldest, _latest = many
    opened = visit(served.url)
    route = f"#/dead-letters?letter={oldest}"
    panel = opened.go(route).locator(".panel").filter(has=opened.page.get_by_role("heading", name=oldest))
    expect(panel).to_contain_text(OLD)
    assert served.call("POST", f"dead-letters/{oldest}/drop").status_code == 200
    opened.page.reload()
    expect(panel.locator(".badge")).to_contain_text("dropped")
    opened.expected = ["404"]
    opened.go("#/dead-letters?letter=0/999999")
    expect(opened.page.locator("main .state.gone")).to_be_visible()
