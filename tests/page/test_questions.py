"""A stranger's ten questions of docs/page.md: each is answered from the overview in the steps that stand there.

A step is a press, a choice or a text that is entered. They are taken by the roles and names that a reader is told.
"""

import re
from collections.abc import Iterator

import pytest
from page.fixtures import Open
from page.gateway import InThread
from playwright.sync_api import Page, expect

from sluice.domain.stream.commands import TruncateStream

STREAM = "demo/orders"


class Walk:
    """Takes steps on a page, and counts them."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.main = page.get_by_role("main")
        self.steps = 0

    def open(self, name: str) -> None:
        """A page of the navigation."""
        self._step()
        self.page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
        expect(self.main.get_by_role("heading", level=1)).to_have_text(name)

    def search(self, text: str, kind: str) -> None:
        """What the search finds first for a text, which is of that kind."""
        self._step()
        self.page.get_by_role("button", name=re.compile("^Search")).click()
        self.page.get_by_role("combobox", name="Search").fill(text)
        hit = self.page.get_by_role("option").first
        expect(hit).to_contain_text(re.compile(rf"{kind}\s*{re.escape(text)}"))
        hit.click()

    def press(self, role: str, name: str) -> None:
        """A link or a button on the page itself."""
        self._step()
        self.main.get_by_role(role, name=name, exact=True).first.click()  # type: ignore[arg-type]

    def choose(self, box: str, option: str) -> None:
        self._step()
        self.main.get_by_role("combobox", name=box).select_option(label=option)

    def fill(self, box: str, text: str) -> None:
        self._step()
        field = self.main.get_by_role("searchbox", name=box)
        field.fill(text)
        field.press("Enter")

    def moment(self, ago: str) -> None:
        """One of the moments that the header offers."""
        self._step()
        self.page.get_by_role("banner").get_by_role("button", name=re.compile("^now")).click()
        self.page.get_by_role("dialog", name="Time").get_by_role("button", name=ago, exact=True).click()

    def _step(self) -> None:
        self.steps += 1


@pytest.fixture
def walk(sample: InThread, visit: Open) -> Iterator[Walk]:
    """From the overview; it must not have taken more than three steps."""
    walk = Walk(visit(sample.url).go("#/"))
    yield walk
    assert walk.steps <= 3


def test_what_is_stuck_and_what_does_it_wait_for(walk: Walk) -> None:
    state = walk.main.get_by_role("region", name="State of the system")
    expect(state).to_contain_text(re.compile("10 workflows failing.*waits for container 2"))
    walk.open("Workflows")
    card = walk.main.get_by_role("region", name="Failing").get_by_role("article").first
    expect(card.get_by_role("list", name="waits for")).to_contain_text("container 2 of segment store")


def test_which_stream_is_slow(walk: Walk) -> None:
    walk.open("Streams")
    walk.choose("State", "odd: unreachable, failing or hot")
    expect(walk.main.get_by_role("row", name=STREAM)).to_contain_text("unreachable")
    walk.press("link", STREAM)
    expect(walk.main).to_contain_text(re.compile(r"2 of 6 segments unreachable.*127\.0\.0\.1:12347 does not answer"))


def test_why_did_this_split(walk: Walk) -> None:
    walk.search(STREAM, "stream")
    walk.press("link", "Why")
    split = walk.main.get_by_role("listitem").filter(has_text="split")
    expect(split.first).to_contain_text(re.compile(r"\d\.#epoch\.\d+: \d+ events a second, the target is 100"))


def test_who_is_behind(walk: Walk) -> None:
    walk.open("Streams")
    walk.press("button", "Slowest group")
    first = walk.main.get_by_role("region", name="Streams").get_by_role("row").nth(1)
    expect(first).to_contain_text(re.compile(r"(audit|billing)\s*≥ [\d.]+ MiB"))
    walk.steps += 1
    first.get_by_role("link", name=re.compile("audit|billing")).click()
    expect(walk.main.get_by_text("1 without a reader")).to_be_visible()
    expect(walk.main.get_by_role("row").filter(has_text="reader-a").first).to_contain_text("#epoch.")


def test_what_failed_last_night(walk: Walk) -> None:
    walk.open("Requests")
    walk.choose("Span", "1 d")
    walk.press("button", "refused")
    row = walk.main.get_by_role("row").filter(has_text="shop/refunds")
    expect(row).to_contain_text("stream not found")
    expect(row).to_contain_text("bob")


def test_which_store_holds_this(walk: Walk) -> None:
    walk.search(STREAM, "stream")
    walk.press("link", "Segments")
    row = walk.main.get_by_role("region", name=f"Segments of {STREAM}").get_by_role("row").nth(1)
    expect(row.get_by_role("cell").last).to_have_text(re.compile(r"\d\D+127\.0\.0\.1:1234[567]"))


def test_what_became_of_my_request(walk: Walk, sample: InThread) -> None:
    request = sample.do(lambda gateway: gateway.request(TruncateStream("shop", "mails", {0: 8})))
    walk.search(request, "request")
    said = walk.main.get_by_role("row")
    expect(said.filter(has_text="TruncateStream").first).to_contain_text("requested")
    expect(said.filter(has_text="StreamTruncated").first).to_contain_text("SUCCESS")


def test_do_commits_keep_up(walk: Walk) -> None:
    walk.open("Transactions")
    row = walk.main.get_by_role("region", name="Streams with transactions").get_by_role("row", name="demo/payments")
    expect(row).to_contain_text(re.compile(r"7.*min"))
    queue = walk.main.get_by_role("region", name="Queue of commits")
    expect(queue).to_contain_text("Merging")
    expect(queue.get_by_role("listitem").first).to_contain_text("waits")


def test_where_do_events_of_a_key_go_and_what_do_the_last_say(walk: Walk) -> None:
    walk.search(STREAM, "stream")
    walk.fill("Routing key", "customer 7")
    expect(walk.main.get_by_role("status").first).to_have_text(re.compile(r"to\s*\d+\.#epoch\.\d+\s*at 0\.\d+"))
    walk.press("link", "Events")
    expect(walk.main.get_by_text('Only the segment of key "customer 7".')).to_be_visible()


def test_how_was_it_an_hour_ago(walk: Walk) -> None:
    walk.search("demo/payments", "stream")
    expect(walk.main).to_contain_text("5 open, 7 to commit")
    walk.moment("-1h")
    expect(walk.page.get_by_role("banner").get_by_role("button", name="back to now")).to_be_visible()
    expect(walk.main).to_contain_text("0 open, 0 to commit")
