"""The page before a whole system: what is done by clients shows, what is done by the page is done."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from page.fixtures import Open, Slowness, chromium, slowness, visit
from playwright.sync_api import Page, expect
from support.controller import unique
from support.pace import Pace
from support.pravega import manager

from harness import System, eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]
__all__ = ["chromium", "slowness", "visit"]

S = "/sluice/v1"
SHOWS_S = 1.0
"""From the record in the journal to the screen."""
COMES_S = 60.0


@pytest.fixture
def client(system: System) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=system.rest_url, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def stream(client: httpx.Client) -> str:
    """A stream of two segments, as scope/name."""
    scope = unique("page")
    assert client.put(f"{S}/scopes/{scope}").status_code == 201
    body = {"scaling": {"type": "fixed", "minSegments": 2}}
    assert client.put(f"{S}/scopes/{scope}/streams/st", json=body).status_code == 201
    return f"{scope}/st"


def url(system: System) -> str:
    return system.page_url


def path(stream: str) -> str:
    scope, _, name = stream.partition("/")
    return f"{S}/scopes/{scope}/streams/{name}"


def scale(client: httpx.Client, stream: str, sealed: list[int], ranges: list[tuple[float, float]]) -> None:
    """A scale, and its end."""
    answer = client.post(f"{path(stream)}/scale", json={"sealed": sealed, "ranges": ranges})
    assert answer.status_code == 202, answer.text
    epoch = answer.json()["epoch"]
    status = f"{path(stream)}/scales/{epoch}"
    eventually(lambda: client.get(status).json()["done"], COMES_S, "the scale is done")


def names_of(segments: list[dict[str, Any]]) -> set[str]:
    return {f"{one['number']}.#epoch.{one['epoch']}" for one in segments}


def picture(page: Page) -> Any:
    """The canvas that has the focus and the pointer."""
    return page.get_by_role("application")


def test_a_stream_of_the_client_appears_within_a_second_and_deleted_leaves_a_tombstone(
    system: System, visit: Open, slowness: Slowness
) -> None:
    scope, streams = unique("page"), manager(system.grpc_address)
    streams.create_scope(scope)
    page = visit(url(system)).go(f"#/streams?q={scope}")
    # The page reads behind a barrier, too: Kafka says where the journal ends.
    listed = f"{system.rest_url}{S}/scopes/{scope}/streams"
    with Pace(lambda: httpx.get(listed, timeout=COMES_S, trust_env=False).raise_for_status()) as pace:
        assert streams.create_stream(scope, "st", 2)
        began = time.monotonic()
        expect(page.get_by_role("link", name=f"{scope}/st", exact=True)).to_be_visible(timeout=COMES_S * 1000)
        took_s = time.monotonic() - began
    assert took_s <= SHOWS_S * slowness() + 2 * pace.longest_s
    opened = visit(url(system))
    shown = opened.go(f"#/streams/{scope}/st")
    opened.expected = ["404"]
    assert streams.seal_stream(scope, "st") and streams.delete_stream(scope, "st")
    expect(shown.locator("main .state.gone")).to_be_visible(timeout=COMES_S * 1000)


def test_rectangles_are_the_segments_of_every_epoch_and_are_named_when_pointed_at(
    system: System, client: httpx.Client, stream: str, visit: Open
) -> None:
    scale(client, stream, [0], [(0.0, 0.25), (0.25, 0.5)])
    second = client.get(path(stream)).json()["segments"]
    scale(client, stream, [s["id"] for s in second if s["high"] <= 0.5], [(0.0, 0.5)])
    epochs = [client.get(f"{path(stream)}/segments", params={"epoch": e}).json()["items"] for e in range(3)]
    expected = set().union(*map(names_of, epochs))
    opened = visit(url(system))
    page = opened.go(f"#/streams/{stream}?as=table")
    cells = page.locator("main table tbody tr:not(.space) td:first-child")
    expect(cells).to_have_count(len(expected))
    assert {text.strip() for text in cells.all_inner_texts()} == expected
    page.get_by_role("button", name="Picture").click()
    # Until it is drawn it knows of no pointer.
    opened.watch.settle(page)
    box = picture(page).bounding_box()
    assert box is not None
    # Just left of now, in the upper half of the keys.
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] * 0.3)
    tip = page.locator(".picture-tip")
    expect(tip).to_be_visible()
    assert tip.locator("b").inner_text() in expected


def test_a_split_by_keyboard_becomes_an_epoch_and_one_that_does_not_cover_is_not_sent(
    system: System, client: httpx.Client, stream: str, visit: Open
) -> None:
    opened = visit(url(system))
    page = opened.go(f"#/streams/{stream}")
    picture(page).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    field = page.get_by_label("Split at")
    field.fill("7")
    field.press("Enter")
    expect(page.locator("aside [role=alert]")).to_be_visible()
    assert not any(call.startswith("POST") for call in opened.watch.calls)
    low, high = (0.0, 0.5) if "0.#epoch.0" in page.locator("aside h3").inner_text() else (0.5, 1.0)
    field.fill(str((low + high) / 2))
    field.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Scale", exact=True)).to_be_enabled()
    dialog.get_by_role("button", name="Scale", exact=True).focus()
    page.keyboard.press("Enter")
    expect(dialog.get_by_text("It has begun")).to_be_visible(timeout=COMES_S * 1000)
    page.keyboard.press("Escape")
    eventually(lambda: client.get(path(stream)).json()["epoch"] == 1, COMES_S, "the new epoch is active")
    found = {(s["low"], s["high"]) for s in client.get(path(stream)).json()["segments"]}
    assert {(low, (low + high) / 2), ((low + high) / 2, high)} < found


def test_a_truncation_needs_the_name_and_moves_the_head(
    system: System, client: httpx.Client, stream: str, visit: Open
) -> None:
    scope, _, name = stream.partition("/")
    # The client's threads end with its manager.
    streams = manager(system.grpc_address)
    writer = streams.create_writer(scope, name, 10)
    for number in range(20):
        writer.write_event("x" * 92, str(number))
    writer.flush()
    scale(client, stream, [0, 1], [(0.0, 0.25), (0.25, 1.0)])
    cut = {str(segment["id"]): 0 for segment in client.get(path(stream)).json()["segments"]}
    opened = visit(url(system))
    page = opened.go(f"#/streams/{stream}")
    page.get_by_role("button", name="Overlays").click()
    page.get_by_role("textbox", name="Cut as").fill(", ".join(f"{segment}=0" for segment in cut))
    page.get_by_role("button", name="Truncate here").click()
    dialog = page.get_by_role("dialog")
    typed = dialog.get_by_role("textbox")
    typed.fill("another")
    expect(dialog.get_by_role("button", name="Truncate", exact=True)).to_be_disabled()
    typed.press("Enter")
    assert client.get(path(stream)).json()["truncatedBytes"] == 0
    typed.fill(stream)
    dialog.get_by_role("button", name="Truncate", exact=True).click()
    eventually(lambda: client.get(path(stream)).json()["headCut"] == cut, COMES_S, "the head has moved")
    assert client.get(path(stream)).json()["truncatedBytes"] == 20 * 100
    page.goto(f"{url(system)}#/streams/{stream}?as=table")
    expect(page.locator("main table").get_by_text("truncated").first).to_be_visible()


def test_a_trace_on_the_page_is_that_of_the_command_line(
    system: System, client: httpx.Client, stream: str, visit: Open, tmp_path: Path
) -> None:
    request = client.post(f"{path(stream)}/seal").headers["Sluice-Request"]
    # A search that takes long answers with what it has, and the page shows that.
    history = f"{S}/requests/{request}"
    eventually(lambda: client.get(history).json()["complete"], COMES_S, "all topics are searched")
    command = (Path(sys.executable).with_name("sluice"), "trace", request, "--json")
    environment = {**os.environ, "SLUICE_API": system.rest_url, "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    expected = json.loads(printed.stdout)
    page = visit(url(system)).go(f"#/requests/{request}")
    with page.expect_download(timeout=COMES_S * 1000) as saved:
        page.get_by_role("button", name="Export as JSON").click()
    target = tmp_path / "trace.json"
    saved.value.save_as(target)
    found = json.loads(target.read_text())
    assert {key: found[key] for key in expected} == expected


def test_the_demonstration_is_started_from_the_page_fills_its_scope_and_ends(
    system: System, client: httpx.Client, visit: Open
) -> None:
    page = visit(url(system)).go()
    assert client.get(f"{S}/demonstration").json()["running"] is False
    # A system that tests share is not empty, so the page does not offer it; what the offer's button does is this call.
    assert client.post(f"{S}/demonstration").json()["running"] is True
    expect(page.get_by_role("heading", name="Demonstration")).to_be_visible(timeout=COMES_S * 1000)
    payments = f"{S}/scopes/demonstration/streams/payments/transactions"

    def committed() -> bool:
        answer = client.get(payments, params={"state": "ended"})
        return answer.status_code == 200 and any(one["state"] == "COMMITTED" for one in answer.json()["items"])

    eventually(committed, COMES_S, "a transaction is committed")
    readings = f"{S}/scopes/demonstration/streams/readings"
    assert client.get(readings).json()["config"]["scaling"]["type"] == "events"
    eventually(
        lambda: client.get(f"{S}/scopes/demonstration/readergroups/display").status_code == 200, COMES_S, "a group"
    )
    page.get_by_role("button", name="End the demonstration").click()
    page.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    eventually(lambda: client.get(f"{S}/demonstration").json()["running"] is False, COMES_S, "it has ended")
    assert "problem" not in client.get(f"{S}/demonstration").json()
