"""What the page shows of segments whose container does not answer until it does, and of those not yet created."""

from collections.abc import Iterator

import pytest
from page.fixtures import Open
from page.gateway import SILENT, InThread, PageGateway, in_thread
from page.sample_data import STORES, Size
from playwright.sync_api import expect

from api_gateway.app import close_app

WIDE = "#/streams/demo/wide"
STORE = STORES[SILENT % len(STORES)]


@pytest.fixture
def healed() -> Iterator[InThread]:
    """A gateway of its own: its silent container is healed."""
    with in_thread(Size(streams=2)) as served:
        yield served


def test_a_stream_with_a_silent_container_is_red_until_that_answers(healed: InThread, visit: Open) -> None:
    overview, streams, stream = (visit(healed.url).go(route) for route in ("#/", "#/streams?q=demo/wide", WIDE))
    state = overview.get_by_role("region", name="State of the system")
    expect(state.locator(".badge.bad").first).to_have_text("◆act")
    expect(state).to_contain_text(f"ontainer {SILENT} of segment store {STORE} has not answered")
    expect(streams.get_by_role("row").filter(has_text="wide").locator(".badge.bad")).to_have_text("◆unreachable")
    line = stream.locator(".status-line")
    expect(stream.locator("h1 + .badge.bad")).to_have_text("◆unreachable")
    expect(line.locator(".badge.bad")).to_contain_text("of 24 segments unreachable")
    expect(line).to_contain_text(f"{STORE} does not answer")
    expect(line).not_to_contain_text("steady")
    healed.do(lambda gateway: gateway.heal())
    expect(stream.locator("h1 + .badge")).to_have_text("●active")
    expect(line).not_to_contain_text("unreachable")
    expect(streams.get_by_role("row").filter(has_text="wide").locator(".badge.bad")).to_have_count(0)
    expect(state).not_to_contain_text("has not answered")


def test_segments_of_a_stream_that_is_being_created_are_not_drawn_as_there(sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go("#/streams/iot/archive?as=table")
    rows = page.get_by_role("region", name="Segments of iot/archive: 16 segments").locator("tbody tr")
    expect(rows).to_have_count(16)
    for state in rows.locator("td:nth-child(3)").all_text_contents():
        assert state == "being created"
    page.get_by_role("button", name="Picture").click()
    expect(page.get_by_role("group", name="Legend")).to_contain_text("being created")
    drawn = page.get_by_role("application", name="Segments of")
    expect(drawn).to_be_visible()


def test_a_gateway_that_is_held_for_a_migration_says_so_in_one_line(healed: InThread, visit: Open) -> None:
    held = "the journal is held for a migration; 3 calls wait"

    async def hold(gateway: PageGateway) -> None:
        app = gateway.world.app
        app.state.health.degraded["hold"] = lambda: held
        await close_app(app, 0)

    healed.run(hold)
    opened = visit(healed.url)
    opened.expected = ["503"]
    expect(opened.go("#/").locator(".banner")).to_contain_text(held)
