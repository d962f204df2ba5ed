"""Commands on decisions of the past, what-if and transactions in numbers."""

from typing import Any

import pytest
from unit.cli.conftest import Cli
from unit.cli.shown import ONE, STREAM, TXN, WORKFLOW, items

WHAT_IF: dict[str, Any] = {
    "kind": "scale", "since": 1_699_999_200_000, "until": 1_700_000_100_000,
    "happened": [{"at": 1_700_000_000_000, "code": "steady", "reason": "calm", "segments": 2}],
    "would": [
        {"at": 1_700_000_000_100, "code": "split", "reason": "hot", "segments": 4, "acts": True},
        {"at": 1_700_000_000_200, "code": "cooling-down", "reason": "in passing", "segments": 4, "passing": True},
    ],
    "firstDifference": 1_700_000_000_000, "notes": ["it holds up to there"],
    "kept": {"at": [1_700_000_000_000], "happened": [2048], "would": [1024]},
}  # fmt: skip
LISTS: list[tuple[list[str], str, Any, list[str]]] = [
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
SHOWN: list[tuple[list[str], str, Any, list[str]]] = [
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


@pytest.mark.parametrize(("command", "call", "item", "words"), LISTS, ids=[" ".join(c[:2]) for c, *_ in LISTS])
def test_lists(cli: Cli, command: list[str], call: str, item: Any, words: list[str]) -> None:
    cli.answers[call] = items(item)
    assert cli(*command, "--json").document == [item]
    found = cli(*command).out
    assert all(word in found for word in words)


@pytest.mark.parametrize(("command", "call", "thing", "words"), SHOWN, ids=[" ".join(c[:2]) for c, *_ in SHOWN])
def test_shown_things(cli: Cli, command: list[str], call: str, thing: Any, words: list[str]) -> None:
    cli.answers[call] = thing
    assert cli(*command, "--json").document == thing
    found = cli(*command).out
    assert all(word in found for word in words)


def test_a_what_if_sends_what_is_to_be_another(cli: Cli) -> None:
    cli.answers[f"POST {ONE}/what-if"] = WHAT_IF
    for policy, body in (
        ("min=2,cooldown=5m", {"scaling": {"minSegments": 2, "cooldownMs": 300_000}}),
        ("time=1h..2d", {"retention": {"type": "time", "min": 3_600_000, "max": 172_800_000}}),
    ):
        cli("what-if", "demo/orders", policy, "--since", "2023-11-14T22:00Z")
        assert cli.calls[-1][1] == {**body, "since": 1_699_999_200_000}


@pytest.mark.parametrize(
    "command", [["what-if", "demo/orders", "target=7"], ["decision", "list", "demo/orders", "--kind", "scale"]]
)
def test_wrong_usage_is_exit_code_2_and_calls_nothing(cli: Cli, command: list[str]) -> None:
    assert cli(*command).code == 2 and cli.calls == []
