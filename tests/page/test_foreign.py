"""What others write, and what other sites do: text stays text, and a site that is not ours changes nothing."""

import re

import httpx
import pytest
from page.fixtures import Open
from page.gateway import InThread
from page.proxy import other_site
from page.sample_data import SCRIPT
from playwright.sync_api import Dialog, Route, expect
from support.wait import SOON_S

RETURNS = "scopes/shop/streams/returns"


@pytest.mark.parametrize("route", ["#/dead-letters", "#/streams/shop/mails", "#/streams?q=mails"])
def test_text_of_others_is_shown_as_text_and_the_layout_holds(route: str, sample: InThread, visit: Open) -> None:
    opened = visit(sample.url)
    dialogs: list[str] = []

    def dismissed(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    opened.page.on("dialog", dismissed)
    page = opened.go(route)
    expect(page.locator("main")).to_contain_text(SCRIPT)
    assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
    assert dialogs == []


def test_a_watermark_without_a_time_is_none(sample: InThread, visit: Open) -> None:
    """Clients that give no time to a commit give the least number there is."""
    opened = visit(sample.url)

    def timeless(route: Route) -> None:
        description = route.fetch().json()
        route.fulfill(json={**description, "watermark": {"lower": -(2**63), "upper": -(2**63), "at": 1}})

    opened.page.route(re.compile("/streams/orders$"), timeless)
    page = opened.go("#/streams/demo/orders")
    expect(page.get_by_role("button", name="Seal")).to_be_visible()
    expect(page.locator(".status-line")).not_to_contain_text("watermark")


def test_a_form_of_another_site_is_refused_and_changes_nothing_while_curl_may(sample: InThread, visit: Open) -> None:
    before = sample.do(lambda gateway: gateway.records_of("shop/returns"))
    form = f'<form method=post action="{sample.origin}/sluice/v1/{RETURNS}/seal"><button>Win</button></form>'
    with other_site(f"<!doctype html><title>other</title>{form}") as site:
        opened = visit(f"{site}/")
        opened.page.goto(opened.url)
        with opened.page.expect_response(lambda response: response.url.endswith("/seal")) as refused:
            opened.page.get_by_role("button").click()
        assert refused.value.status == 403
        # That the form goes to another origin is what the test is about; Chromium notes the refusal.
        opened.watch.abroad.clear()
        opened.expected = ["403"]
    assert sample.do(lambda gateway: gateway.records_of("shop/returns")) == before
    assert sample.call("POST", f"{RETURNS}/seal").status_code == 200
    assert sample.call("GET", RETURNS).json()["state"] == "SEALED"


def test_a_page_that_another_name_leads_to_gets_nothing(sample: InThread) -> None:
    """What rebinding of names does: the browser believes that the gateway is the attacker's site."""
    answer = httpx.get(f"{sample.origin}/sluice/v1/scopes", headers={"Host": "attacker.example"}, timeout=SOON_S)
    assert answer.status_code in (400, 403, 421)
