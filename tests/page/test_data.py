"""What the page shows of the events of a stream and of the entries of a table: data of others, as text only."""

import re
from uuid import uuid4

from page.fixtures import Open
from page.gateway import InThread
from page.sample_data import SCRIPT
from playwright.sync_api import expect

from sluice.domain.segment import kvt_segment_name, segment_name
from sluice.pravega.wire.fields import NO_VERSION, TableEntry, TableKey

EVENTS = (b'{"order": 1, "sum": 9.5}', SCRIPT.encode(), b"\x00\x01\xff")


def test_last_events_of_a_stream_as_text_json_and_hex_from_a_cut_and_by_key(sample: InThread, visit: Open) -> None:
    created = sample.call("PUT", "scopes/demo/streams/read", {"scaling": {"type": "fixed", "minSegments": 2}})
    assert created.status_code == 201
    name = segment_name("demo", "read", 0)
    sample.run(lambda gateway: gateway.world.store.append_events(name, uuid4(), EVENTS, len(EVENTS)))
    page = visit(sample.url).go("#/streams/demo/read?tab=events")
    rows = page.locator(".records.data > li")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("00 01 ff")
    expect(rows.nth(1)).to_contain_text(SCRIPT)
    expect(rows.nth(2)).to_contain_text("24 B")
    page.get_by_role("button", name="JSON").click()
    rows.nth(2).locator("summary").click()
    expect(rows.nth(2).locator("pre")).to_have_text('{\n  "order": 1,\n  "sum": 9.5\n}')
    page.get_by_role("button", name="Hex").click()
    expect(rows.nth(2).locator("pre")).to_contain_text("7b 22 6f 72 64 65 72 22")
    rows.nth(2).get_by_role("link", name="0.#epoch.0").click()
    expect(page.get_by_text("Only segment 0.#epoch.0.")).to_be_visible()
    page.get_by_role("button", name="All segments").click()
    page.goto(f"{sample.url}#/streams/demo/read?tab=events&cut=0%3D32")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text(re.compile(r"0\.#epoch\.0\s*32"))
    page.goto(f"{sample.url}#/streams/demo/read?tab=events&key=none")
    expect(page.get_by_text('Only the segment of key "none".')).to_be_visible()


def test_entries_of_a_table_page_by_page_and_by_key(sample: InThread, visit: Open) -> None:
    created = sample.call("PUT", "scopes/demo/tables/read", {"partitionCount": 1, "primaryKeyLength": 4})
    assert created.status_code == 201
    entries = [TableEntry(TableKey(b"%04d" % number, NO_VERSION), b"value %d" % number) for number in range(60)]
    name = kvt_segment_name("demo", "read", 0)
    sample.run(lambda gateway: gateway.world.store.update_table_entries(name, entries))
    page = visit(sample.url).go("#/tables/demo/read")
    rows = page.locator(".records.data > li")
    expect(rows).to_have_count(50)
    page.get_by_role("button", name="Next page").click()
    expect(rows).to_have_count(10)
    page.get_by_label("Key").fill("0007")
    page.get_by_role("button", name="Find").click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("value 7")
    expect(page.locator(".cli code", has_text="sluice table get demo/read 0007")).to_be_visible()
