"""The first visit: the button of an empty system starts the demonstration's process, and another one ends it."""

import sys
import time
from collections.abc import Iterator

import pytest
from page.fixtures import Open
from page.gateway import InThread, in_thread
from playwright.sync_api import expect
from support.wait import SOON_S

from api_gateway.console.demonstration import Demonstration

WAITS = (sys.executable, "-c", "import sys; sys.stdin.read()")
"""A program that does nothing until its input ends. What the real one does is for tests of a whole system."""


@pytest.fixture(scope="module")
def demonstration() -> Demonstration:
    return Demonstration(lambda: "127.0.0.1:9", lambda: time.time_ns() // 1_000_000, program=WAITS, leaves_s=SOON_S)


@pytest.fixture(scope="module")
def empty(demonstration: Demonstration) -> Iterator[InThread]:
    with in_thread(demonstration=demonstration) as served:
        yield served
        served.run(lambda _gateway: demonstration.close())


def test_an_empty_system_offers_the_demonstration_which_then_can_be_ended(
    empty: InThread, demonstration: Demonstration, visit: Open
) -> None:
    page = visit(empty.url).go()
    dialog = page.get_by_role("dialog")
    for button, verb, is_running in (("Start", "Start", True), ("End", "End", False)):
        page.get_by_role("button", name=f"{button} the demonstration…").click()
        assert demonstration.state.running is not is_running
        dialog.get_by_role("button", name=verb, exact=True).click()
        dialog.get_by_role("button", name="Close").click()
        expect(page.get_by_role("button", name=f"{button} the demonstration…")).to_have_count(0)
        assert demonstration.state.running is is_running
    expect(page.get_by_role("button", name="Start the demonstration…")).to_be_visible()
    assert demonstration.state.problem == ""
