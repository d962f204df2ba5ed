"""Commands that the page has copied: the command line has each of them, and what only reads, it does here."""

import shlex
from typing import Any

import pytest
import typer.main
from page.fixtures import Open
from page.gateway import InThread
from page.routes import PAGES
from typer.core import TyperGroup
from typer.testing import CliRunner

from sluice_cli.main import app

COMMAND = typer.main.get_command(app)
STREAM = "#/streams/demo/orders"
ROUTES = {
    **PAGES,
    **{tab: f"{STREAM}?tab={tab}" for tab in ("transactions", "readers", "events", "segments", "configuration")},
    "segment": f"{STREAM}?segment=0",
    "by key": f"{STREAM}?tab=events&key=customer%207",
    "from a cut": f"{STREAM}?tab=events&cut=0%3D0",
    "a past moment": f"{STREAM}?at=-10m",
    "a group": "#/groups/demo/billing",
    "a table": "#/tables/shop/prices",
    "a scope": "#/scopes/demo",
    "found workflows": "#/workflows?kind=create-stream&scope=shop&state=failing&q=a%20b",
    "transactions of one": "#/streams/demo/payments?tab=transactions",
}
READS = {"list", "show", "segments", "events", "successors", "reports", "readers"}
ELSEWHERE = {"--at", "topic", "trace"}
"""What is read from Kafka, which is not here."""


def command_of(words: list[str]) -> str:
    """The name of the command that the words call, with arguments that it takes. Raises the library's UsageError."""
    command: Any = COMMAND
    context: Any = None
    name: Any = "sluice"
    rest = words
    while isinstance(command, TyperGroup):
        context = command.make_context(name, list(rest), parent=context, resilient_parsing=False)
        name, command, rest = command.resolve_command(context, rest)
    command.make_context(name, list(rest), parent=context)
    return f"{name}"


def test_a_command_that_is_none_is_found_out() -> None:
    assert command_of(["stream", "events", "demo/orders", "--limit", "5"]) == "events"
    for words in (["event", "read", "demo/orders"], ["stream", "events", "a/b", "--no-such"], ["stream", "events"]):
        with pytest.raises(Exception, match=r"No such command|No such option|Missing parameter"):
            command_of(words)


@pytest.mark.parametrize("route", ROUTES.values(), ids=ROUTES)
def test_each_copied_command_is_one_and_those_that_read_run(route: str, sample: InThread, visit: Open) -> None:
    page = visit(sample.url).go(route)
    lines: list[str] = page.locator("main .cli code").evaluate_all("all => all.map((one) => one.textContent)")
    for line in dict.fromkeys(lines):
        words = shlex.split(line)[1:]
        if command_of(words) in READS and not ELSEWHERE & set(words):
            result = CliRunner().invoke(app, [*words, "--api", sample.origin])
            assert result.exit_code == 0, f"{line}: {result.stderr}"
