"""Reader groups and tables of all scopes, of which some have names that no address can have."""

from collections.abc import Iterator

import pytest
from page.fixtures import Open
from page.gateway import InThread, in_thread
from page.sample_data import GROUP_UUID, ORDERS, Size
from page.sample_log import SampleLog
from playwright.sync_api import expect

from sluice.domain.config import ReaderGroupConfig
from sluice.domain.ids import GroupId
from sluice.domain.reader_group import decide as groups
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.scope.commands import CreateScope


@pytest.fixture(scope="module")
def sample() -> Iterator[InThread]:
    """One with a scope "." and a reader group ".."."""

    def write(log: SampleLog, _now: int) -> None:
        log.ask(CreateScope("."), "amy")
        odd = GroupId(ORDERS.scope, "..")
        request, _ = log.ask(CreateReaderGroup(*odd, ReaderGroupConfig(GROUP_UUID.format(9), {str(ORDERS): {}})), "amy")
        log.decide(odd.key, lambda reader, context: groups.finish_create(reader, context, odd, []), request)

    with in_thread(Size(streams=0), past=write) as served:
        yield served


def test_names_that_no_address_can_have_break_no_list(sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    for route, known in (("#/groups", "billing"), ("#/tables", "prices")):
        rows = opened.go(route).locator("main tbody tr:not(.space)")
        expect(rows.filter(has_text=known)).to_be_visible()
        expect(opened.page.get_by_role("alert")).to_have_count(0)
    rows = opened.go("#/groups").locator("main tbody tr:not(.space)")
    expect(rows.filter(has_text="demo/..").get_by_title("cannot address")).to_have_count(3)


def test_the_list_of_groups_has_nothing_looked_up_in_the_past(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).page
    with page.expect_request("**/readergroups/billing/readers?*") as sent:
        page.goto(f"{sample.url}#/groups")
    assert sent.value.url.endswith("?age=false")
