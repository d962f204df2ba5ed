"""How commands end: conditions that do not hold, refusals, pages and limits, wrong usage."""

from typing import Any

import httpx
import pytest
import typer.main
from unit.cli.conftest import Cli, problem
from unit.cli.shown import CONFIG, FIXED, GROUP, GROUP_CONFIG, NO_STREAM, ONE, STREAM, TXN, WORKFLOW

from sluice_cli.main import app
from sluice_cli.rendering import workflow_text


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
    assert cli.calls[-1][1] == {"config": {**GROUP_CONFIG, "refreshMs": 1000}}
    cli("reader-group", "update", "demo/rg", "--checkpoint-interval", "never")
    assert cli.calls[-1][1] == {"config": {**GROUP_CONFIG, "checkpointIntervalMs": -1}}


UPDATES = [
    (ONE, STREAM, ["stream", "update", "demo/orders", "--retain", "none"]),
    ("/scopes/demo/readergroups/rg", GROUP, ["reader-group", "update", "demo/rg", "--refresh", "1s"]),
]


@pytest.mark.parametrize(("path", "there", "command"), UPDATES, ids=["stream", "reader group"])
def test_an_update_is_refused_if_another_caller_has_changed_it_meanwhile(
    cli: Cli, path: str, there: Any, command: list[str]
) -> None:
    conditions = []

    def refuse(request: httpx.Request) -> httpx.Response:
        conditions.append(request.headers.get("If-Match"))
        return problem(412, "it has another configuration by now", "CONFIG_CHANGED")

    cli.answers[f"GET {path}"] = httpx.Response(200, json=there, headers={"ETag": '"e1"'})
    cli.answers[f"PUT {path}"] = refuse
    found = cli(*command)
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


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("stream list demo --tag red --internal", "/scopes/demo/streams?limit=1000&tag=red&internal=true"),
        ("stream segments demo/orders --time 1700000000000", f"{ONE}/segments?limit=1000&time=1700000000000"),
        ("stream statistics demo/orders --window hour --count 2", f"{ONE}/statistics?window=hour&count=2"),
        ("stream topology demo/orders --most 100", f"{ONE}/topology?most=100"),
        ("stream rates demo/orders --from -1h --bucket 5m", f"{ONE}/rates/history?from=-1h&bucket=300000"),
        ("workflow list --kind scale-stream --scope demo", "/workflows?limit=1000&kind=scale-stream&scope=demo"),
        ("transaction list demo/orders --state ended", f"{ONE}/transactions?limit=1000&state=ended"),
        ("transaction waiting", "/transactions?sort=waiting&limit=100"),
        (
            "transaction summary demo/orders --bucket 1h --from 2023-11-14T22:00Z",
            f"{ONE}/transactions/summary?bucket=3600000&from=1699999200000",
        ),
        (
            "decision list --from 2023-11-14T22:00Z --kind scale",
            "/decisions?limit=1000&kind=scale&from=1699999200000",
        ),
    ],
)
def test_options_are_passed_on(cli: Cli, command: str, call: str) -> None:
    cli.answers[f"GET {call}"] = problem(404, "it is the call that counts")
    cli(*command.split())
    assert cli.calls[0][0] == f"GET {call}"


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
        ["what-if", "demo/orders", "target=7"],
        ["decision", "list", "demo/orders", "--kind", "scale"],
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
        "about", "audit", "backup", "config", "container", "context", "custom-resources", "dead-letter", "decision",
        "demonstration", "diagnose", "follow", "journal", "member", "migrate", "overview", "partition", "reader-group",
        "request", "scope", "search", "security", "snapshot", "stream", "table", "topic", "trace", "transaction",
        "verify", "what-if", "workflow",
    }  # fmt: skip
    for name, leaf in leaves.items():
        assert {"json", "api", "kafka"} <= {parameter.name for parameter in leaf.params}, name
        assert leaf.help, name


def test_a_workflow_that_waits_has_not_failed() -> None:
    waiting = {**WORKFLOW, "step": "subscribe", "attempts": 0, "lastError": "waits: seal-stream runs there"}
    assert ", step subscribe waits: seal-stream runs there" in workflow_text(waiting)
