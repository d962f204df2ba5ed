"""Every command on the API, for people and for programs: what it asks, what it prints, how it ends."""

from typing import Any

import httpx
import pytest
from unit.cli.conftest import Cli, problem
from unit.cli.shown import (
    FIXED,
    LETTER,
    NO_STREAM,
    ONE,
    SEGMENTS,
    STREAM,
    TABLE_CONFIG,
    TXN,
    WHAT_IF,
    WORKFLOW,
    items,
)

CHANGES: list[tuple[list[str], str, Any]] = [
    (["scope", "create", "demo"], "PUT /scopes/demo", None),
    (["scope", "delete", "demo"], "DELETE /scopes/demo", None),
    (
        ["stream", "create", "demo/orders", "--segments", "4"],
        f"PUT {ONE}",
        {"scaling": {**FIXED, "minSegments": 4}},
    ),
    (
        ["stream", "create", "demo/orders", "--scale", "events:100", "--factor", "2", "--min", "1",
         "--retain", "size=1GiB..10GiB", "--tag", "a", "--tag", "b", "--rollover", "1MiB", "--writer-timeout", "5s"],
        f"PUT {ONE}",
        {
            "scaling": {"type": "events", "targetRate": 100, "scaleFactor": 2, "minSegments": 1},
            "retention": {"type": "size", "min": 2**30, "max": 10 * 2**30},
            "tags": ["a", "b"], "rolloverSizeBytes": 2**20, "timestampAggregationTimeout": 5000,
        },
    ),
    (["stream", "truncate", "demo/orders", "--cut", "0=5,1=-1"], f"POST {ONE}/truncate", {"cut": {"0": 5, "1": -1}}),
    (["stream", "seal", "demo/orders"], f"POST {ONE}/seal", None),
    (["stream", "delete", "demo/orders"], f"DELETE {ONE}", None),
    (
        ["reader-group", "create", "demo/rg", "--stream", "demo/a", "--start", "demo/b:0=5,1=6",
         "--retention", "automatic"],
        "PUT /scopes/demo/readergroups/rg",
        {"config": {"streams": {"demo/a": {}, "demo/b": {"start": {"0": 5, "1": 6}}}, "retention": "automatic"}},
    ),
    (["reader-group", "delete", "demo/rg"], "DELETE /scopes/demo/readergroups/rg", None),
    (
        ["table", "create", "demo/kv", "--partitions", "2", "--secondary-key-bytes", "4"],
        "PUT /scopes/demo/tables/kv",
        TABLE_CONFIG,
    ),
    (["table", "delete", "demo/kv"], "DELETE /scopes/demo/tables/kv", None),
    (["transaction", "ping", "demo/orders", TXN], f"POST {ONE}/transactions/{TXN}/ping", {"leaseMs": 30_000}),
    (["transaction", "commit", "demo/orders", TXN], f"POST {ONE}/transactions/{TXN}/commit", None),
    (["transaction", "abort", "demo/orders", TXN], f"POST {ONE}/transactions/{TXN}/abort", None),
    (["workflow", "retry", "demo/orders"], "POST /workflows/retry", {"aggregate": "stream:demo/orders"}),
    (["workflow", "retry", "demo"], "POST /workflows/retry", {"aggregate": "scope:demo"}),
    (
        ["workflow", "cancel", "table:demo/kv"],
        "POST /workflows/cancel",
        {"aggregate": "table:demo/kv", "workflow": "create-table-abc-1"},
    ),
]  # fmt: skip


CREATING = {**WORKFLOW, "aggregate": "table:demo/kv", "id": "create-table-abc-1"}


@pytest.mark.parametrize(("command", "call", "body"), CHANGES, ids=[" ".join(c[:2]) for c, *_ in CHANGES])
def test_changes(cli: Cli, command: list[str], call: str, body: Any) -> None:
    cli.answers[f"GET {ONE}"] = NO_STREAM
    cli.answers["GET /scopes/demo/readergroups/rg"] = problem(404, "no such group", "RG_NOT_FOUND")
    cli.answers["GET /workflows?limit=1000&scope=demo"] = items(CREATING)
    cli.answers[call] = {"status": "SUCCESS"}
    assert cli(*command, "--json").document == {"request": "abc-1", "status": "SUCCESS"}
    assert cli.calls[-1] == (call, body)
    found = cli(*command)
    assert found.code == 0 and "(request abc-1)" in found.out and found.err == ""


DRY_RUNS = [
    (["truncate", "demo/orders", "--cut", "0=5"], f"POST {ONE}/truncate?dryRun=true"),
    (["seal", "demo/orders"], f"POST {ONE}/seal?dryRun=true"),
    (["delete", "demo/orders"], f"DELETE {ONE}?dryRun=true"),
    (["scale", "demo/orders", "--seal", "0", "--into", "0..1"], f"POST {ONE}/scale?dryRun=true"),
    (["update", "demo/orders", "--tag", "a"], f"PUT {ONE}?dryRun=true"),
]


@pytest.mark.parametrize(("command", "call"), DRY_RUNS, ids=[c[0] for c, _ in DRY_RUNS])
def test_a_dry_run_says_what_would_be_done(cli: Cli, command: list[str], call: str) -> None:
    cli.answers[f"GET {ONE}"] = STREAM
    cli.answers[call] = {"effects": {"segmentsSealed": 4, "bytesDropped": 2048}}
    found = cli("stream", *command, "--dry-run")
    assert cli.calls[-1][0] == call
    assert found.code == 0 and "4" in found.out and "2 KiB" in found.out
    cli.answers[call] = {"effects": {}, "refused": {"status": "STREAM_SEALED", "detail": "it is sealed"}}
    assert "refused, STREAM_SEALED: it is sealed" in cli("stream", *command, "--dry-run").out


@pytest.mark.parametrize("command", ["list demo", "show demo/orders", "seal demo/orders --dry-run"])
def test_what_is_shown_does_not_command_the_terminal(cli: Cli, command: str) -> None:
    evil = "a\x1b]0;owned\x07\x9b2J b"
    listed = {"name": "orders", "state": "ACTIVE", "epoch": 2, "segments": 4, "tags": [evil]}
    cli.answers["GET /scopes/demo/streams"] = items(listed)
    cli.answers[f"GET {ONE}"] = {**STREAM, "config": {**STREAM["config"], "tags": [evil]}}
    refused = {"status": "STREAM_SEALED", "detail": evil}
    cli.answers[f"POST {ONE}/seal?dryRun=true"] = {"effects": {}, "refused": refused}
    found = cli("stream", *command.split())
    assert found.code == 0 and "a\\x1b]0;owned\\x07\\x9b2J b" in found.out and "\x1b" not in found.out


def test_several_workflows_are_retried_at_once(cli: Cli) -> None:
    cli.answers["POST /workflows/retry-each"] = items(
        {"aggregate": "stream:demo/a", "status": "SUCCESS", "request": "abc-1"},
        {"aggregate": "scope:demo", "status": "NOT_RUNNING", "detail": "nothing is under way", "request": "abc-2"},
    )
    found = cli("workflow", "retry", "demo/a", "demo")
    assert cli.calls[-1][1] == {"aggregates": ["stream:demo/a", "scope:demo"]}
    assert "NOT_RUNNING" in found.out and "abc-2" in found.out
    assert (found.code, found.err) == (1, "Error: 1 of 2 do not retry\n")


def test_where_nothing_is_under_way_nothing_is_cancelled(cli: Cli) -> None:
    cli.answers["GET /workflows?limit=1000&scope=demo"] = items(CREATING)
    found = cli("workflow", "cancel", "demo/kv")
    assert found.code == 1 and "nothing is under way on stream:demo/kv" in found.err
    assert [call for call, _ in cli.calls] == ["GET /workflows?limit=1000&scope=demo"]


def test_a_delete_answers_without_a_body(cli: Cli) -> None:
    cli.answers[f"DELETE {ONE}"] = httpx.Response(204, headers={"Sluice-Request": "abc-2"})
    assert cli("stream", "delete", "demo/orders", "--json").document == {"request": "abc-2"}


def test_begin_says_the_id(cli: Cli) -> None:
    cli.answers[f"POST {ONE}/transactions"] = {"id": TXN, "segments": SEGMENTS}
    assert cli("transaction", "begin", "demo/orders", "--lease", "1m", "--json").document["id"] == TXN
    assert cli.calls[-1][1] == {"leaseMs": 60_000}
    assert TXN in cli("transaction", "begin", "demo/orders").out


def test_dead_letters_are_shown_replayed_and_dropped(cli: Cli) -> None:
    cli.answers["GET /dead-letters/3/17"] = LETTER
    cli.answers["GET /dead-letters/3/18"] = problem(404, "dead letter 3/18: there is no dead letter")
    assert cli("dead-letter", "show", "3/17", "--json").document == LETTER
    assert "{broken" in cli("dead-letter", "show", "3/17").out
    missing = cli("dead-letter", "show", "3/18")
    assert missing.code == 1 and "dead letter 3/18" in missing.err and "list --settled" in missing.err
    settled = {"partition": 3, "offset": 17, "settled": "replayed", "request": "old~"}
    cli.answers["POST /dead-letters/3/17/replay"] = settled
    assert cli("dead-letter", "replay", "3/17", "--json").document == settled
    assert "(request old~)" in cli("dead-letter", "replay", "3/17").out
    cli.answers["POST /dead-letters/3/17/drop"] = {"partition": 3, "offset": 17, "settled": "dropped"}
    assert cli("dead-letter", "drop", "3/17").code == 0
    assert cli("dead-letter", "drop", "17").code == 2


def test_a_what_if_sends_what_is_to_be_another(cli: Cli) -> None:
    cli.answers[f"POST {ONE}/what-if"] = WHAT_IF
    for policy, body in (
        ("min=2,cooldown=5m", {"scaling": {"minSegments": 2, "cooldownMs": 300_000}}),
        ("time=1h..2d", {"retention": {"type": "time", "min": 3_600_000, "max": 172_800_000}}),
    ):
        cli("what-if", "demo/orders", policy, "--since", "2023-11-14T22:00Z")
        assert cli.calls[-1][1] == {**body, "since": 1_699_999_200_000}
