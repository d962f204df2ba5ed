"""What the page shows of reader groups that no reader has joined yet, and in which order."""

import re
from functools import partial

from page.fixtures import Open
from page.gateway import InThread, PageGateway
from playwright.sync_api import expect

from sluice.domain.config import ReaderGroupConfig
from sluice.domain.reader_group.commands import CreateReaderGroup


def test_a_group_without_readers_is_behind_by_all_it_will_read_or_it_is_unknown(sample: InThread, visit: Open) -> None:
    for group, stream in (("late", "demo/orders"), ("missing", "demo/nosuch")):
        config = ReaderGroupConfig(id=f"{group}-0000-0000-0000-000000000000", starts={stream: {}})
        sample.do(partial(PageGateway.request, command=CreateReaderGroup("demo", group, config)))
    late, missing, groups = (
        visit(sample.url).go(f"#/groups{name}") for name in ("/demo/late", "/demo/missing", "?q=demo")
    )
    expect(late.locator(".says")).to_have_text(re.compile(r"^0 readers.*Behind by (≥ )?[1-9]", re.DOTALL))
    expect(missing.locator(".says")).to_have_text(re.compile(r"^0 readers.*Behind by unknown", re.DOTALL))
    expect(groups.get_by_role("row").filter(has_text="missing")).to_contain_text("unknown")
    expect(groups.get_by_role("row").filter(has_text="late")).to_contain_text(re.compile(r"[1-9].* [KM]iB"))
    names = groups.locator("main tbody tr:not(.space) td:first-child")
    expect(names).to_have_text([re.compile(name) for name in ("audit", "billing", "late", "missing")])
    groups.get_by_role("button", name="Lag").click()
    expect(names.first).to_contain_text("late")
    expect(names.last).to_contain_text("missing")
