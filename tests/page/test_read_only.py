"""A page that may only read: it offers no action anywhere, and the gateway refuses each that it would send."""

import re
from collections.abc import Iterator

import pytest
from page.fixtures import Open
from page.gateway import InThread, in_thread
from page.sample_data import Size
from playwright.sync_api import expect

from api_gateway.console.rest import RULES
from api_gateway.edge.security.rules import READ_UPDATE
from api_gateway.settings import PageMode

NAMES = {
    "scope": "shop",
    "stream": "carts",
    "group": "billing",
    "table": "prices",
    "txn": "00000000-0000-0000-0000-000000000000",
    "partition": "0",
    "offset": "0",
}
ACTION = re.compile(
    "^(Seal|Delete|Edit|Create|commit|extend|abort|Retry|Cancel|Replay|Drop|Make this|Start the|End the)"
)
"""How buttons begin that open the dialog of an action."""
OFFERS = {
    "#/streams": 1,
    "#/streams/demo/orders?tab=configuration": 3,
    "#/streams/demo/orders?tab=why": 3,
    "#/streams/demo/payments?tab=transactions": 5,
    "#/scopes/shop": 1,
    "#/groups/demo/billing": 1,
    "#/tables/shop/prices": 1,
    "#/workflows": 3,
    "#/dead-letters": 2,
}
"""How many actions a page has at least, whether they are offered or not."""


@pytest.fixture(scope="module")
def read_only() -> Iterator[InThread]:
    with in_thread(Size(streams=0), PageMode.READ_ONLY) as served:
        yield served


def test_no_page_offers_an_action_and_each_says_why(read_only: InThread, visit: Open) -> None:
    opened = visit(read_only.url)
    page = opened.go()
    expect(page.locator("header").get_by_text("read-only")).to_be_visible()
    for route, least in OFFERS.items():
        actions = opened.go(route).locator("main").get_by_role("button", name=ACTION)
        expect(actions.nth(least - 1)).to_be_attached()
        for action in actions.all():
            expect(action).to_have_attribute("aria-disabled", "true")
            expect(action).to_have_attribute("title", "this page is read-only")
        # With force: Playwright itself does not click what is greyed.
        actions.first.click(force=True)
        expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_gateway_refuses_each_change_of_a_page_but_none_of_a_program(read_only: InThread, visit: Open) -> None:
    opened = visit(read_only.url)
    page = opened.go()
    opened.expected = ["403"]
    calls = [
        (method, re.sub(r"\{(\w+)\}", lambda found: NAMES[found[1]], path))
        for method, _, path in (
            operation.partition(" ")
            for operation, rule in RULES.items()
            if rule is not None and rule.level is READ_UPDATE
        )
    ]
    sent = read_only.do(lambda gateway: len(gateway.world.sent))
    answers = page.evaluate(
        """async (calls) => {
            const found = [];
            for (const [method, path] of calls) found.push((await fetch(path, {method})).status);
            return found;
        }""",
        calls,
    )
    assert len(calls) > 20
    assert dict.fromkeys(calls, 403) == dict(zip(calls, answers, strict=True))
    assert read_only.do(lambda gateway: len(gateway.world.sent)) == sent
    # Programs are no page: read-only is about what a browser may send.
    assert read_only.call("POST", "scopes/shop/streams/clicks/seal").status_code == 200
