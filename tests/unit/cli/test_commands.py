"""Every command on the API, for people and for programs: what it asks, what it prints, how it ends."""

from typing import Any

import httpx
import pytest
import typer.main
from unit.cli.conftest import Cli, problem

from sluice_cli.main import app
from sluice_cli.rendering import workflow_text

NO_STREAM = problem(404, "stream demo/orders does not exist", "STREAM_NOT_FOUND")
FIXED = {"type": "fixed", "targetRate": 0, "scaleFactor": 0}
CONFIG: dict[str, Any] = {
    "scaling": {**FIXED, "minSegments": 2},
    "tags": ["red"],
    "rolloverSizeBytes": 0,
    "timestampAggregationTimeout": 0,
}
WORKFLOW = {
    "id": "scale-stream-1700000000000", "kind": "scale-stream", "step": "seal-replaced", "since": 1_700_000_000_000,
    "attempts": 4, "lastError": "ContainerNotFound", "retryRequests": 0, "cancelled": False,
}  # fmt: skip
SEGMENTS: list[dict[str, Any]] = [
    {"id": 0, "number": 0, "epoch": 0, "low": 0.0, "high": 0.5, "container": 1, "store": "127.0.0.1:12345"},
    {"id": 1, "number": 1, "epoch": 0, "low": 0.5, "high": 1.0, "container": 2},
]
STREAM: dict[str, Any] = {
    "scope": "demo", "name": "orders", "state": "SCALING", "epoch": 0, "createdAt": 1_700_000_000_000,
    "config": {**CONFIG, "retention": {"type": "time", "min": 3_600_000, "max": 172_800_000}},
    "segments": SEGMENTS, "headCut": {"0": 17}, "truncatedBytes": 2048, "workflow": WORKFLOW,
    "waiting": {"kind": "seal-stream", "at": 1_700_000_000_001},
    "transactions": {"open": 3, "waiting": 2, "aborting": 1},
    "subscribers": [{"name": "demo/rg", "groupId": "g", "generation": 0, "updatedAt": 1, "cut": {"0": 99}}],
    "decisions": [{"kind": "scale", "code": "split", "reason": "twice the target", "at": 1_700_000_000_002}],
    "markStream": "_MARKorders", "watermark": {"lower": 5, "upper": 6, "at": 1_700_000_000_003},
}  # fmt: skip
STATISTICS: dict[str, Any] = {
    "window": "hour", "asOf": 1_700_000_000_000, "ageS": 4.2,
    "items": [
        {
            "begin": 1_699_999_200_000, "end": 1_700_002_800_000, "opened": 5, "committed": 1,
            "aborted": {"lease": 1, "user": 2}, "timed": 3, "totalMs": 900, "longestMs": 700,
            "operations": {"scale": 1},
        }
    ],
}  # fmt: skip
ONE = "/scopes/demo/streams/orders"
TXN = "00000000-0000-0000-0102-030405060708"
GROUP_CONFIG = {
    "streams": {"demo/orders": {"start": {"0": 5}}}, "retention": "manual", "refreshMs": 3000,
    "checkpointIntervalMs": 30_000, "maxOutstandingCheckpoints": 3,
}  # fmt: skip
GROUP = {
    "scope": "demo", "name": "rg", "id": "g-1", "generation": 4, "state": "ACTIVE", "createdAt": 1_700_000_000_000,
    "config": GROUP_CONFIG,
}  # fmt: skip
TABLE_CONFIG = {"partitionCount": 2, "primaryKeyLength": 16, "secondaryKeyLength": 4, "rolloverSizeBytes": 0}
TABLE = {
    "scope": "demo", "name": "kv", "state": "ACTIVE", "createdAt": 1_700_000_000_000, "config": TABLE_CONFIG,
    "segments": [{"id": 0, "low": 0.0, "high": 1.0}],
}  # fmt: skip
LETTER = {
    "partition": 3, "offset": 17, "topic": "sluice.commit", "key": "demo/orders", "reason": "KeyError('x')",
    "service": "txn-manager/c", "at": 1_700_000_000_000, "value": "{broken", "encoding": "text",
}  # fmt: skip


def items(*found: Any) -> dict[str, Any]:
    return {"items": list(found)}


LISTS: list[tuple[list[str], str, Any, list[str]]] = [
    (["scope", "list"], "GET /scopes", {"name": "demo"}, ["demo"]),
    (
        ["stream", "list", "demo"],
        "GET /scopes/demo/streams",
        {"name": "orders", "state": "ACTIVE", "epoch": 2, "segments": 4, "tags": ["red", "blue"]},
        ["orders", "ACTIVE", "red, blue"],
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
        {**WORKFLOW, "aggregate": "stream:demo/orders", "canCancel": False},
        ["stream:demo/orders", "scale-stream", "ContainerNotFound"],
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


def test_what_exists_is_not_created_again(cli: Cli) -> None:
    requested: list[str | None] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        requested.append(request.headers.get("If-None-Match"))
        return problem(412, "stream demo/orders exists already", "STREAM_EXISTS")

    cli.answers[f"PUT {ONE}"] = refuse
    cli.answers["GET /scopes/demo/readergroups/rg"] = GROUP
    for command in (["stream", "create", "demo/orders"], ["reader-group", "create", "demo/rg", "--stream", "demo/a"]):
        found = cli(*command)
        assert found.code == 1 and "exists already" in found.err and "update" in found.err
    assert requested == ["*"] and [call for call, _ in cli.calls] == [f"PUT {ONE}", "GET /scopes/demo/readergroups/rg"]


def test_an_update_changes_what_is_given_and_keeps_the_rest(cli: Cli) -> None:
    cli.answers[f"GET {ONE}"] = STREAM
    cli.answers[f"PUT {ONE}"] = {"status": "SUCCESS"}
    cli("stream", "update", "demo/orders", "--retain", "none")
    assert cli.calls[-1][1] == {**CONFIG, "retention": None}
    cli("stream", "update", "demo/orders", "--segments", "3", "--tag", "")
    assert cli.calls[-1][1] == {**STREAM["config"], "scaling": {**FIXED, "minSegments": 3}, "tags": []}
    cli.answers["GET /scopes/demo/readergroups/rg"] = GROUP
    cli.answers["PUT /scopes/demo/readergroups/rg"] = GROUP
    cli("reader-group", "update", "demo/rg", "--refresh", "1s")
    assert cli.calls[-1][1] == {"config": {**GROUP_CONFIG, "refreshMs": 1000}, "generation": 4}


def test_an_update_is_refused_if_another_caller_has_changed_the_stream_meanwhile(cli: Cli) -> None:
    conditions = []

    def refuse(request: httpx.Request) -> httpx.Response:
        conditions.append(request.headers.get("If-Match"))
        return problem(412, "stream demo/orders has another configuration by now", "CONFIG_CHANGED")

    cli.answers[f"GET {ONE}"] = httpx.Response(200, json=STREAM, headers={"ETag": '"e1"'})
    cli.answers[f"PUT {ONE}"] = refuse
    found = cli("stream", "update", "demo/orders", "--retain", "none")
    assert found.code == 1 and "once more" in found.err
    assert conditions == ['"e1"']


def test_a_list_is_read_page_by_page_up_to_its_limit(cli: Cli) -> None:
    cli.answers["GET /scopes?limit=1000"] = {"items": [{"name": "a"}], "next": "t1"}
    cli.answers["GET /scopes?limit=1000&after=t1"] = {"items": [], "next": "t2"}
    cli.answers["GET /scopes?limit=1000&after=t2"] = {"items": [{"name": "b"}, {"name": "c"}]}
    assert [s["name"] for s in cli("scope", "list", "--json").document] == ["a", "b", "c"]
    cli.answers["GET /scopes?limit=2"] = {"items": [{"name": "a"}], "next": "t1"}
    cli.answers["GET /scopes?limit=1&after=t1"] = {"items": [{"name": "b"}], "next": "t2"}
    assert [s["name"] for s in cli("scope", "list", "--limit", "2", "--json").document] == ["a", "b"]


def test_filters_of_lists_are_passed_on(cli: Cli) -> None:
    cli.answers["GET /scopes/demo/streams"] = cli.answers[f"GET {ONE}/segments"] = items()
    cli.answers["GET /workflows"] = cli.answers[f"GET {ONE}/transactions"] = items()
    cli("stream", "list", "demo", "--tag", "red", "--internal")
    assert cli.calls[-1][0] == "GET /scopes/demo/streams?limit=1000&tag=red&internal=true"
    cli("stream", "segments", "demo/orders", "--time", "1700000000000")
    assert cli.calls[-1][0] == f"GET {ONE}/segments?limit=1000&time=1700000000000"
    cli("workflow", "list", "--kind", "scale-stream", "--scope", "demo")
    assert cli.calls[-1][0] == "GET /workflows?limit=1000&kind=scale-stream&scope=demo"
    cli("transaction", "list", "demo/orders", "--state", "ended")
    assert cli.calls[-1][0] == f"GET {ONE}/transactions?limit=1000&state=ended"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (NO_STREAM, ["STREAM_NOT_FOUND: stream demo/orders does not exist", "sluice stream list SCOPE"]),
        (problem(409, "not sealed", "STREAM_NOT_SEALED", "r-9"), ["sluice stream seal", "sluice trace r-9"]),
        (problem(503, "Kafka is away"), ["Kafka is away", "sluice member list"]),
        (httpx.Response(404, text="<html>"), ["not as Sluice does", "SLUICE_API"]),
        (httpx.Response(404, json={"detail": "Not Found"}), ["not as Sluice does"]),
    ],
)
def test_a_refusal_says_why_and_what_to_do(cli: Cli, answer: httpx.Response, words: list[str]) -> None:
    cli.answers[f"DELETE {ONE}"] = answer
    for more in ([], ["--json"]):
        found = cli("stream", "delete", "demo/orders", *more)
        assert found.code == 1 and found.out == ""
        for word in words:
            assert word in found.err


def test_an_api_that_is_away_is_exit_code_3(cli: Cli) -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("Connection refused", request=request)

    def linger(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("", request=request)

    for answer, word in ((refuse, "make status"), (linger, "did not answer in time")):
        cli.answers["GET /scopes"] = answer
        found = cli("scope", "list", "--json")
        assert found.code == 3 and found.out == "" and word in found.err


@pytest.mark.parametrize(
    "command",
    [
        ["stream", "show", "orders"],
        ["stream", "create", "demo/orders", "--segments", "0"],
        ["stream", "create", "demo/orders", "--scale", "much"],
        ["stream", "create", "demo/orders", "--retain", "all"],
        ["stream", "create", "demo/orders", "--retain", "size=10GiB..1GiB"],
        ["stream", "scale", "demo/orders"],
        ["stream", "scale", "demo/orders", "--to", "2", "--seal", "0"],
        ["stream", "truncate", "demo/orders"],
        ["stream", "update", "demo/orders"],
        ["stream", "show", "demo/orders", "--at", "soon"],
        ["stream", "show", "demo/orders", "--at", "2999-12-31T00:00:00Z"],
        ["stream", "segments", "demo/orders", "--time", "2999-12-31T00:00:00Z"],
        ["scope", "show", "demo", "--at", "2999-12-31T00:00:00Z"],
        ["reader-group", "create", "demo/rg"],
        ["reader-group", "create", "demo/rg", "--stream", "demo/a", "--retention", "some"],
        ["reader-group", "update", "demo/rg"],
        ["transaction", "list", "demo/orders", "--state", "lost"],
        ["transaction", "ping", "demo/orders", TXN, "--lease", "long"],
        ["nothing"],
        ["scope"],
    ],
)
def test_wrong_usage_is_exit_code_2_and_asks_nothing(cli: Cli, command: list[str]) -> None:
    found = cli(*command)
    assert found.code == 2 and cli.calls == []


def test_every_command_has_the_options_of_all() -> None:
    """None is forgotten when one is added."""
    command = typer.main.get_command(app)
    leaves: dict[str, Any] = {}

    def walk(name: str, found: Any) -> None:
        if hasattr(found, "commands"):
            for own, child in found.commands.items():
                walk(f"{name} {own}".strip(), child)
        else:
            leaves[name] = found

    walk("", command)
    assert len(leaves) > 40
    assert {name.partition(" ")[0] for name in leaves} == {
        "audit", "backup", "container", "context", "dead-letter", "decision", "diagnose", "member", "reader-group",
        "scope", "security", "snapshot", "stream", "table", "topic", "trace", "transaction", "verify", "workflow",
    }  # fmt: skip
    for name, leaf in leaves.items():
        assert {"json", "api", "kafka"} <= {parameter.name for parameter in leaf.params}, name
        assert leaf.help, name


def test_a_workflow_that_waits_has_not_failed() -> None:
    waiting = {**WORKFLOW, "step": "subscribe", "attempts": 0, "lastError": "waits: seal-stream runs there"}
    assert ", step subscribe waits: seal-stream runs there" in workflow_text(waiting)
