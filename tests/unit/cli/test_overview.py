"""The overview, what a gateway says of itself, partitions, and following what changes."""

import json
from typing import Any

import httpx
import pytest
from unit.cli.conftest import Cli, problem
from unit.cli.shown import ONE, STREAM, TABLE

OVERVIEW = {
    "sentence": "2 dead letters.", "level": "warn", "ready": True, "problems": [],
    "counts": {"scopes": 1, "streams": 2, "groups": 0, "tables": 0, "segments": 7, "transactionsOpen": 3,
               "transactionsWaiting": 1},
    "workflows": {"running": 1, "failing": 0, "waiting": 0, "queued": 0}, "deadLetters": 2, "overdueLeases": 0,
    "hotStreams": ["demo/orders"], "at": 1_700_000_000_000,
}  # fmt: skip
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


def test_the_overview_begins_with_its_sentence(cli: Cli) -> None:
    cli.answers["GET /overview"] = OVERVIEW
    assert cli("overview", "--json").document == OVERVIEW
    shown = cli("overview").out
    assert shown.startswith("2 dead letters.\n") and "3 open, 1 waiting for their commit" in shown
    assert ["hot", "streams", "demo/orders"] in [line.split() for line in shown.splitlines()]


def test_a_gateway_says_who_you_are(cli: Cli) -> None:
    cli.answers |= {"GET /about": ABOUT, "GET /me": ME}
    assert cli("about", "--json").document == {**ABOUT, "me": ME}
    assert "not logged in" in cli("about").out


def test_partitions_are_listed_with_what_waits(cli: Cli) -> None:
    items = [
        {"topic": "sluice.commit", "partition": 0, "owner": "txn-1", "lag": 3, "oldestOpenMs": 150_000, "end": 17},
        {"topic": "sluice.commit", "partition": 1, "lag": 0, "end": 4},
    ]
    cli.answers["GET /partitions"] = {"items": items, "at": 1}
    assert cli("partition", "list", "--json").document == items
    shown = [line.split() for line in cli("partition", "list").out.splitlines()]
    assert ["sluice.commit", "0", "txn-1", "3", "2m", "17"] in shown


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


def test_what_cannot_be_reached_is_said_beside_the_state(cli: Cli) -> None:
    lost = {"segments": 1, "since": 1_700_000_000_000, "stores": ["127.0.0.1:12345"], "gone": []}
    cli.answers[f"GET {ONE}"] = {**STREAM, "unreachable": lost}
    says = "1 of 2 segments since 2023-11-14 22:13:20.000Z: 127.0.0.1:12345 does not answer"
    assert says in cli("stream", "show", "demo/orders").out
    cli.answers["GET /scopes/demo/tables/kv"] = {**TABLE, "unreachable": {**lost, "gone": lost["stores"]}}
    assert (
        "1 of 1 partitions since 2023-11-14 22:13:20.000Z: 127.0.0.1:12345 has gone"
        in cli("table", "show", "demo/kv").out
    )
    row = {"name": "orders", "state": "ACTIVE", "epoch": 0, "segments": 2, "unreachable": 1, "tags": []}
    cli.answers["GET /scopes/demo/streams?limit=1000"] = {"items": [row]}
    assert "ACTIVE, 1 unreachable" in cli("stream", "list", "demo").out
