"""Three users with authentication: what the page offers each, and what the gateway refuses whatever is shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from page.fixtures import Open, Visit
from page.gateway import InThread, in_thread
from page.sample_data import Size
from playwright.sync_api import Locator, expect

from api_gateway.edge.security.authentication import Handlers
from api_gateway.edge.security.basic import BasicHandler
from api_gateway.edge.security.guard import Guard
from sluice.security.accounts import read_accounts
from sluice.security.passwords import hash_password
from sluice.security.watched import Watched

S = "/sluice/v1"
PASSWORD = "1111_aaaa"
NOT_ALLOWED = "the credentials do not allow it"


class User(NamedTuple):
    """Somebody with an ACL; who has READ_UPDATE on `demo` owns it, on everything operates the system."""

    name: str
    acl: str
    owns: bool
    operates: bool


_SEES = "prn::/,READ;prn::/sluice:workflows,READ;prn::/sluice:dead-letters,READ"
USERS = (
    User("operator", "prn::*,READ_UPDATE", owns=True, operates=True),
    User("owner", f"prn::/scope:demo,READ_UPDATE;prn::/scope:demo/*,READ_UPDATE;{_SEES}", owns=True, operates=False),
    User("reader", f"prn::/scope:demo,READ;prn::/scope:demo/*,READ;{_SEES}", owns=False, operates=False),
)


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InThread]:
    file: Path = tmp_path_factory.mktemp("accounts") / "accounts"
    file.write_text("".join(f"{user.name}:{hash_password(PASSWORD)}:{user.acl}\n" for user in USERS))
    handler = BasicHandler(Watched("password file", [file], read_accounts))
    with in_thread(Size(streams=0), guard=Guard(Handlers([handler]), readers_write=False)) as served:
        yield served
    handler.close()


def log_in(opened: Visit, user: str, password: str) -> None:
    opened.page.get_by_label("User").fill(user)
    opened.page.get_by_label("Password").fill(password)
    opened.page.get_by_role("button", name="Log in").click()


@pytest.fixture(params=USERS, ids=lambda user: user.name)
def user(request: pytest.FixtureRequest) -> User:
    found: User = request.param
    return found


@pytest.fixture
def logged_in(secured: InThread, visit: Open, user: User) -> Visit:
    opened = visit(secured.url)
    # Chromium notes each call that is refused; before the login that is each call.
    opened.expected += ["401", "403"]
    opened.go()
    log_in(opened, user.name, "wrong")
    expect(opened.page.get_by_role("alert")).to_contain_text("another password")
    log_in(opened, user.name, PASSWORD)
    expect(opened.page.locator("header .who")).to_contain_text(user.name)
    return opened


def check_offered(button: Locator, is_offered: bool) -> None:
    """What cannot be done is there all the same, greyed, with the reason."""
    if is_offered:
        expect(button).not_to_have_attribute("aria-disabled", "true")
    else:
        expect(button).to_have_attribute("aria-disabled", "true")
        expect(button).to_have_attribute("title", NOT_ALLOWED)


def test_the_page_offers_what_the_credentials_allow(logged_in: Visit, user: User) -> None:
    # Not all of them may see the cluster, which the header follows.
    expect(logged_in.page.locator("header .live")).to_contain_text("live")
    page = logged_in.go("#/streams/demo/orders?tab=configuration")
    check_offered(page.get_by_role("button", name="Seal…"), user.owns)
    check_offered(page.get_by_role("button", name="Edit", exact=True), user.owns)
    page = logged_in.go("#/streams/demo/payments?tab=transactions")
    for action in ("commit", "extend", "abort"):
        check_offered(page.get_by_role("button", name=action, exact=True).first, user.owns)
    page = logged_in.go("#/scopes/demo")
    check_offered(page.get_by_role("button", name="Delete with everything…"), user.operates)
    page = logged_in.go("#/workflows")
    check_offered(page.get_by_role("button", name="Retry now").first, user.operates)
    check_offered(page.get_by_role("button", name="Retry all").first, user.operates)
    page = logged_in.go("#/dead-letters")
    check_offered(page.get_by_role("button", name="Replay").first, user.operates)
    check_offered(page.get_by_role("button", name="Drop").first, user.operates)
    page = logged_in.go("#/streams/shop/carts")
    if user.operates:
        expect(page.locator("main .status-line")).to_be_visible()
    else:
        expect(page.locator("main [role=alert]").first).to_contain_text("Not allowed")
    page = logged_in.go("#/streams")
    rows = page.locator("main table tbody tr:not(.space)")
    expect(rows.filter(has_text="orders").first).to_be_visible()
    expect(rows.filter(has_text="carts")).to_have_count(1 if user.operates else 0)
    page.get_by_role("button", name="log out").click()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    expect(rows).to_have_count(0)


_SHOP, _DEMO, _ORDERS = "scopes/shop", "scopes/demo", "scopes/demo/streams/orders"
ANYONE = (
    f"GET {_ORDERS}",
    f"GET {_ORDERS}/topology",
    "GET overview",
    "GET workflows",
    "GET dead-letters",
    "GET streams",
)
OWNERS = (
    f"POST {_ORDERS}/seal?dryRun=true",
    f"DELETE {_ORDERS}?dryRun=true",
    f"POST {_ORDERS}/scale",
    f"POST {_ORDERS}/truncate",
    f"POST {_ORDERS}/transactions",
    f"PUT {_ORDERS}",
    f"PUT {_DEMO}/streams/new",
    f"PUT {_DEMO}/readergroups/new",
)
OPERATORS = (
    "PUT scopes/new-scope",
    "DELETE scopes/no-scope",
    "POST workflows/retry",
    "POST workflows/retry-each",
    "POST workflows/cancel",
    "POST dead-letters/0/999999/replay",
    "POST dead-letters/0/999999/drop",
    "GET containers",
    f"GET {_SHOP}",
    f"GET {_SHOP}/streams/carts",
    f"POST {_SHOP}/streams/carts/seal?dryRun=true",
)
"""What anyone of the three may do, whom the scope `demo` belongs to, and who operates the system. The bodies are empty:
what is not refused for its caller changes nothing either, but for one scope."""

_FETCH = """async (calls) => {
    const found = [];
    for (const [method, path] of calls) found.push((await fetch(path, {method})).status);
    return found;
}"""


def test_the_gateway_refuses_what_the_credentials_do_not_allow(secured: InThread, logged_in: Visit, user: User) -> None:
    logged_in.expected += ["400", "404"]
    sent = secured.do(lambda gateway: len(gateway.world.sent))
    calls = (*ANYONE, *OWNERS, *OPERATORS)
    answers = logged_in.page.evaluate(_FETCH, [[method, f"{S}/{path}"] for method, path in map(str.split, calls)])
    refused = {call for call, status in zip(calls, answers, strict=True) if status == 403}
    assert refused == {*(() if user.owns else OWNERS), *(() if user.operates else OPERATORS)}
    assert 401 not in answers and not any(status >= 500 for status in answers)
    # Of the others only what creates or deletes a scope is a request that the journal decides on.
    assert secured.do(lambda gateway: len(gateway.world.sent)) - sent == (2 if user.operates else 0)
