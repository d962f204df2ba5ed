"""The overview, what a gateway says of itself, partitions, and following what changes."""

import json
from typing import Any

import httpx
import pytest
from unit.cli.conftest import Cli, problem

ABOUT = {
    "cluster": "pravega-cluster", "version": "0.1.0", "page": "0123", "mode": "read-only", "partitions": 16,
    "containers": 4, "now": 1_700_000_000_000,
}  # fmt: skip
ME = {"authentication": True, "rights": {"root": "NONE"}, "readOnly": True}
CHANGED = {
    "items": [
        {"aggregate": "stream:demo/orders", "types": ["StreamSealed"], "at": 1_700_000_000_000, "version": 7},
        {"aggregate": "txn:demo/orders", "types": ["TransactionOpened"], "at": 1_700_000_000_000},
    ],
    "position": "5.7",
}


def feed(*events: tuple[str, dict[str, Any]]) -> httpx.Response:
    text = "".join(f"event: {name}\ndata: {json.dumps(body)}\nid: 1\n\n" for name, body in events)
    return httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})


HELLO = ("hello", {"position": "5.6", "cluster": "c", "page": "", "now": 1})
EXPIRED = ("bye", {"reason": "expired"})
STOPPING = ("bye", {"reason": "stopping"})


def test_a_gateway_says_who_you_are(cli: Cli) -> None:
    cli.answers |= {"GET /about": ABOUT, "GET /me": ME}
    assert cli("about", "--json").document == {**ABOUT, "me": ME}
    assert "not logged in" in cli("about").out


def test_the_last_hour_is_a_line_for_each_minute(cli: Cli) -> None:
    minute = {
        "at": 1_700_000_000_000,
        "changes": 7,
        "commits": 2,
        "aborts": 1,
        "open": 4,
        "waiting": 3,
        "silent": 0,
        "bytes": 9,
    }
    first = {name: value for name, value in minute.items() if name not in ("open", "waiting", "bytes")}
    cli.answers["GET /overview/hour"] = {"bucketMs": 60_000, "to": 1_700_000_010_000, "items": [first, minute]}
    lines = [line.split()[2:] for line in cli("overview", "--hour").out.splitlines() if ":" in line]
    assert lines == [["7", "2", "1", "0"], ["7", "2", "1", "4", "3", "0", "9"]]


def test_changes_are_followed_over_the_end_of_a_feed(cli: Cli) -> None:
    cli.answers["GET /events?of=stream%3Ademo%2Forders%2Ccluster"] = feed(HELLO, ("changed", CHANGED), EXPIRED)
    cli.answers["GET /events?of=stream%3Ademo%2Forders%2Ccluster&since=5.7"] = feed(HELLO, ("many", {}), STOPPING)
    run = cli("follow", "demo/orders", "cluster", "--json")
    assert run.lines == [{"event": "changed", **CHANGED}, {"event": "many"}]
    shown = cli("follow", "demo/orders", "cluster").out
    assert "stream:demo/orders version 7: StreamSealed" in shown and "txn:demo/orders: TransactionOpened" in shown


def test_following_ends_after_as_many_changes_as_are_wanted(cli: Cli) -> None:
    cli.answers["GET /events?of=%2A&since=1.1"] = feed(HELLO, *[("changed", CHANGED)] * 3)
    assert len(cli("follow", "--since", "1.1", "--count", "2", "--json").lines) == 2


@pytest.mark.parametrize("answer", [problem(503, "this gateway is stopping"), httpx.ReadError("connection lost")])
def test_who_is_interrupted_learns_where_to_go_on(cli: Cli, answer: Any) -> None:
    def second(_request: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, httpx.Response)
        return answer

    cli.answers["GET /events?of=%2A"] = feed(HELLO, ("changed", CHANGED), EXPIRED)
    cli.answers["GET /events?of=%2A&since=5.7"] = second
    run = cli("follow")
    assert run.code != 0 and "Go on with --since 5.7." in run.err
