"""Every command on the API, for people and for programs: what it asks, what it prints, how it ends."""

from typing import Any

import httpx
import pytest
from unit.cli.conftest import Cli, problem
from unit.cli.shown import (
    FIXED,
    GROUP,
    GROUP_CONFIG,
    LETTER,
    NO_STREAM,
    ONE,
    SEGMENTS,
    STATISTICS,
    STREAM,
    TABLE,
    TABLE_CONFIG,
    TXN,
    WHAT_IF,
    WORKFLOW,
    items,
)

LISTS: list[tuple[list[str], str, Any, list[str]]] = [
    (["scope", "list"], "GET /scopes", {"name": "demo"}, ["demo"]),
    (
        ["stream", "list", "demo"],
        "GET /scopes/demo/streams",
        {"name": "orders", "state": "ACTIVE", "epoch": 2, "segments": 4, "tags": ["red", "blue"]},
        ["orders", "ACTIVE", "red, blue"],
    ),
    (
        ["stream", "find", "orders", "--sort", "changed"],
        "GET /streams",
        {
            "scope": "demo",
            "name": "orders",
            "state": "SCALING",
            "epoch": 2,
            "segments": 4,
            "tags": [],
            "transactions": 7,
            "workflow": "scale-stream",
            "failing": True,
            "changedAt": 1_700_000_000_000,
            "lastDecision": {"kind": "scale", "code": "split", "at": 1_700_000_000_000},
        },
        ["demo/orders", "scale-stream (failing)", "scale: split"],
    ),
    (
        ["search", "ord"],
        "GET /search",
        {"type": "stream", "name": "demo/orders", "address": "#/streams/demo/orders"},
        ["stream", "demo/orders"],
    ),
    (["stream", "segments", "demo/orders"], f"GET {ONE}/segments", SEGMENTS[0], ["0.#epoch.0", "127.0.0.1:12345"]),
    (
        ["stream", "successors", "demo/orders", "0"],
        f"GET {ONE}/segments/0/successors",
        {**SEGMENTS[1], "id": 4294967298, "replaces": [0, 1]},
        ["2.#epoch.1", "0.#epoch.0, 1.#epoch.0"],
    ),
    (
        ["reader-group", "list", "demo"],
        "GET /scopes/demo/readergroups",
        {"name": "rg", "state": "ACTIVE", "streams": ["demo/orders"]},
        ["rg", "demo/orders"],
    ),
    (
        ["table", "list", "demo"],
        "GET /scopes/demo/tables",
        {"name": "kv", "state": "ACTIVE", "partitionCount": 2},
        ["kv", "2"],
    ),
    (
        ["transaction", "list", "demo/orders"],
        f"GET {ONE}/transactions",
        {"id": TXN, "state": "OPEN", "openedAt": 1_700_000_000_000, "leaseEndsAt": 1_700_000_030_000},
        [TXN, "2023-11-14 22:13:50.000Z"],
    ),
    (
        ["workflow", "list"],
        "GET /workflows",
        {
            **WORKFLOW,
            "aggregate": "stream:demo/orders",
            "canCancel": False,
            "state": "failing",
            "waitsFor": {"why": "a batch", "aggregate": "commits:demo/orders", "then": {"why": "container 2"}},
        },
        ["stream:demo/orders", "scale-stream", "failing", "ContainerNotFound", "a batch; container 2"],
    ),
    (
        ["decision", "list", "demo/orders"],
        f"GET {ONE}/decisions",
        STREAM["decisions"][0],
        ["split", "twice the target"],
    ),
    (
        ["member", "list"],
        "GET /members",
        {"service": "txn-manager", "instance": "c", "endpoints": {"rest": "h:1"}, "since": 1_700_000_000_000},
        ["txn-manager", "rest h:1"],
    ),
    (["dead-letter", "list"], "GET /dead-letters", LETTER, ["3/17", "sluice.commit", "KeyError('x')"]),
    (
        ["transaction", "waiting"],
        "GET /transactions?sort=waiting&limit=100",
        {"stream": "demo/orders", "open": 4, "waiting": 17, "aborting": 1, "oldestWaitingAt": 1_700_000_000_000},
        ["demo/orders", "17"],
    ),
    (
        ["decision", "list", "--from", "2023-11-14T22:00Z", "--kind", "scale"],
        "GET /decisions?limit=1000&kind=scale&from=1699999200000",
        {**STREAM["decisions"][0], "stream": "demo/orders", "acts": True, "carriedOut": False, "request": "scale-1"},
        ["demo/orders", "split", "twice the target", "no", "scale-1"],
    ),
]


@pytest.mark.parametrize(("command", "call", "item", "words"), LISTS, ids=[" ".join(c[:2]) for c, *_ in LISTS])
def test_lists(cli: Cli, command: list[str], call: str, item: Any, words: list[str]) -> None:
    cli.answers[call] = items(item)
    assert cli(*command, "--json").document == [item]
    found = cli(*command)
    assert found.code == 0 and found.err == ""
    for word in words:
        assert word in found.out
    cli.answers[call] = items()
    assert cli(*command, "--json").document == []
    assert len(cli(*command).out.splitlines()) == 1, "an empty list is a sentence"


SHOWN: list[tuple[list[str], str, Any, list[str]]] = [
    (
        ["scope", "show", "demo"],
        "GET /scopes/demo",
        {"name": "demo", "createdAt": 1_700_000_000_000, "streams": 2, "internalStreams": 4, "readerGroups": 1,
         "tables": 0},
        ["demo", "2023-11-14 22:13:20.000Z", "internal streams  4", "reader groups"],
    ),
    (
        ["stream", "show", "demo/orders"],
        f"GET {ONE}",
        STREAM,
        [
            "fixed, 2 segments", "time=1h..2d", "0.#epoch.0=17", "2 KiB", "step seal-replaced failed 4 times",
            "ContainerNotFound", "seal-stream, recorded at", "3 open, 2 waiting, 1 aborting",
            "demo/rg at 0.#epoch.0=99", "split: twice the target", "_MARKorders", "5 to 6", "1.#epoch.0",
        ],
    ),
    (
        ["stream", "statistics", "demo/orders", "--window", "hour", "--count", "2"],
        f"GET {ONE}/statistics?window=hour&count=2",
        STATISTICS,
        ["2023-11-14 22:00", "lease 1, user 2", "300", "scale 1", "2023-11-14 22:13:20.000Z, 4 s ago"],
    ),
    (
        ["stream", "statistics", "demo/nothing"],
        "GET /scopes/demo/streams/nothing/statistics?window=minute&count=10",
        {"window": "minute", "items": []},
        ["nothing was counted yet"],
    ),
    (
        ["stream", "statistics", "demo/quiet", "--window", "day"],
        "GET /scopes/demo/streams/quiet/statistics?window=day&count=10",
        {"window": "day", "asOf": 1_700_000_000_000, "ageS": 0.4, "items": []},
        ["nothing happened to demo/quiet", "0 s ago"],
    ),
    (["stream", "scale-status", "demo/orders", "3"], f"GET {ONE}/scales/3", {"epoch": 3, "done": False}, ["under way"]),
    (
        ["stream", "locate", "demo/orders", "1.#epoch.1"],
        f"GET {ONE}/segments/4294967297/location",
        {"segment": "demo/orders/1.#epoch.1", "container": 3, "store": "h:9"},
        ["demo/orders/1.#epoch.1", "h:9"],
    ),
    (
        ["reader-group", "show", "demo/rg"],
        "GET /scopes/demo/readergroups/rg",
        GROUP,
        ["g-1", "manual", "0.#epoch.0=5", "for ever", "every 30s"],
    ),
    (
        ["reader-group", "show", "demo/still"],
        "GET /scopes/demo/readergroups/still",
        {**GROUP, "config": {**GROUP_CONFIG, "checkpointIntervalMs": -1}},
        ["checkpoints", "never"],
    ),
    (["table", "show", "demo/kv"], "GET /scopes/demo/tables/kv", TABLE, ["16 B + 4 B", "0.#epoch.0"]),
    (
        ["transaction", "show", "demo/orders", TXN],
        f"GET {ONE}/transactions/{TXN}",
        {"id": TXN, "state": "ABORTED", "endedAt": 1_700_000_000_000, "reason": "lease"},
        ["ABORTED", "lease", "2023-11-14 22:13:20.000Z"],
    ),
    (
        ["container", "list"],
        "GET /containers",
        {"items": [{"container": 0, "store": "h:1"}, {"container": 1}], "stores": ["h:1", "h:2"], "assignedAt": 0},
        ["no store", "without container", "h:2", "never"],
    ),
    (
        ["transaction", "summary", "demo/orders", "--bucket", "1h", "--from", "2023-11-14T22:00Z"],
        f"GET {ONE}/transactions/summary?bucket=3600000&from=1699999200000",
        {"bucketMs": 3_600_000, "from": 1_699_999_200_000, "to": 1_700_000_000_000, "firstAt": 1_699_999_999_000,
         "items": [{"at": 1_699_999_200_000, "committed": 7, "abortedByUser": 0, "abortedByLease": 3,
                    "abortedBySeal": 0, "abortedByRestore": 0}]},
        ["2023-11-14 22:00:00.000Z", "7", "3", "before 2023-11-14 22:13:19.000Z"],
    ),
    (
        ["transaction", "commits", "demo/orders"],
        f"GET {ONE}/commits",
        {"batch": {"ids": [TXN], "step": "merge", "since": 1_700_000_000_000, "workflow": WORKFLOW},
         "queue": [{"id": TXN.replace("8", "9"), "position": 1}], "waiting": 1, "waitsFor": "ContainerNotFound"},
        ["1 transactions for", "ContainerNotFound", TXN.replace("8", "9")],
    ),
    (
        ["what-if", "demo/orders", "min=2,cooldown=5m", "--since", "2023-11-14T22:00Z"],
        f"POST {ONE}/what-if",
        WHAT_IF,
        ["steady: calm", "split: hot (4 segments)", "2023-11-14 22:13:20.000Z", "2 KiB; 1 KiB instead", "- it holds"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("command", "call", "thing", "words"), SHOWN, ids=[" ".join(c[:3]) for c, *_ in SHOWN])
def test_shown_things(cli: Cli, command: list[str], call: str, thing: Any, words: list[str]) -> None:
    cli.answers[call] = thing
    assert cli(*command, "--json").document == thing
    found = cli(*command)
    assert found.code == 0 and found.err == ""
    for word in words:
        assert word in found.out


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


def test_readers_of_a_group_are_shown_with_the_lag(cli: Cli) -> None:
    cli.answers["GET /scopes/demo/readergroups/rg/readers"] = {
        "readers": [{"name": "a", "segments": [{"stream": "demo/orders", "segment": 0, "offset": -1}]},
                    {"name": "idle", "segments": []}],
        "unassigned": [{"stream": "demo/orders", "segment": 1, "offset": 42}],
        "lag": {"bytes": 2048, "ms": 90_000}, "at": 1, "complete": False,
    }  # fmt: skip
    found = cli("reader-group", "readers", "demo/rg").out
    for words in ("at its end", "idle", "(waits for a reader)", "42", "at least 2 KiB", "90s old"):
        assert words in found, words
    nothing = {"readers": [], "unassigned": [], "lag": {}, "at": 1, "complete": False}
    cli.answers["GET /scopes/demo/readergroups/rg/readers"] = nothing
    assert ["yet", "to", "be", "read", "unknown"] in [
        line.split() for line in cli("reader-group", "readers", "demo/rg").out.splitlines()
    ]


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
