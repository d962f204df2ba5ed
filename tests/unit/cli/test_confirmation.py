"""A command that destroys data asks first at a terminal, saying in numbers what goes; a script is not asked."""

import os
import pty
import subprocess
import sys
from typing import Any

import pytest
from unit.cli.conftest import Cli, problem
from unit.cli.shown import GROUP, LETTER, ONE, SEGMENTS, STREAM, TABLE, items

from sluice_cli import confirmation

SCOPE = {"name": "demo", "createdAt": 1, "streams": 2, "internalStreams": 1, "readerGroups": 1, "tables": 2}
LISTED = [
    {"name": name, "state": "ACTIVE", "epoch": 0, "segments": segments, "tags": []}
    for name, segments in (("orders", 4), ("clicks", 2), ("_MARKorders", 1))
]
GONE: list[tuple[list[str], str, list[str]]] = [
    (
        ["scope", "delete", "demo", "--recursive"],
        "DELETE /scopes/demo?recursive=true",
        ["2 streams with all events, 7 segments", "1 internal stream", "12 open transactions", "1 reader group, 2 t"],
    ),
    (
        ["stream", "delete", "demo/orders"],
        f"DELETE {ONE}",
        ["2 segments in its last epoch, 0", "6 open transactions", "reader group demo/rg has not read"],
    ),
    (["stream", "truncate", "demo/orders", "--cut", "0=1041"], f"POST {ONE}/truncate", ["1 KiB of events before"]),
    (["reader-group", "delete", "demo/rg"], "DELETE /scopes/demo/readergroups/rg", ["in 1 stream; the events stay"]),
    (["table", "delete", "demo/kv"], "DELETE /scopes/demo/tables/kv", ["all entries in 2 partitions"]),
    (
        ["dead-letter", "drop", "3/17"],
        "POST /dead-letters/3/17/drop",
        ["a record of 7 bytes from sluice.commit with the key demo/orders", "KeyError('x')"],
    ),
]  # fmt: skip
IDS = [" ".join(command[:2]) for command, *_ in GONE]


@pytest.fixture
def full(cli: Cli) -> Cli:
    """A scope with something of everything in it."""
    cli.answers |= {
        "GET /scopes/demo": SCOPE, "GET /scopes/demo/streams?limit=1000&internal=true": items(*LISTED),
        f"GET {ONE}": STREAM, "GET /scopes/demo/streams/clicks": STREAM,
        f"GET {ONE}/segments?limit=1000&epoch=0": items(*SEGMENTS),
        "GET /scopes/demo/readergroups/rg": GROUP, "GET /scopes/demo/tables/kv": TABLE,
        "GET /dead-letters/3/17": LETTER,
    }  # fmt: skip
    cli.answers |= {call: {} for _, call, _ in GONE}
    return cli


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "is_terminal", lambda: True)


def changed(cli: Cli) -> list[str]:
    return [call for call, _ in cli.calls if not call.startswith("GET ")]


@pytest.mark.parametrize(("command", "call", "lines"), GONE, ids=IDS)
@pytest.mark.parametrize("typed", ["n\n", "\n", "", "yesterday\n"])
@pytest.mark.usefixtures("at_terminal")
def test_at_a_terminal_nothing_goes_unless_the_user_says_so(
    full: Cli, command: list[str], call: str, lines: list[str], typed: str
) -> None:
    found = full(*command, typed=typed)
    assert found.code == 1 and found.out == "" and changed(full) == []
    assert "http://127.0.0.1:10080" in found.err and "nothing was done" in found.err and "--yes" in found.err
    for line in lines:
        assert line in found.err


@pytest.mark.parametrize(("command", "call", "lines"), GONE, ids=IDS)
@pytest.mark.usefixtures("at_terminal")
def test_yes_typed_or_given_goes_on(full: Cli, command: list[str], call: str, lines: list[str]) -> None:
    assert full(*command, "--json", typed="y\n").document == {"request": "abc-1"}
    assert changed(full) == [call]
    given = full(*command, "--yes")
    assert given.code == 0 and given.err == "" and changed(full) == [call, call]


@pytest.mark.parametrize(("command", "call", "lines"), GONE, ids=IDS)
def test_without_a_terminal_it_goes_on(full: Cli, command: list[str], call: str, lines: list[str]) -> None:
    found = full(*command)
    assert found.code == 0 and found.err == "" and changed(full) == [call]


@pytest.mark.usefixtures("at_terminal")
def test_a_cut_behind_whole_segments_says_that_more_goes_than_it_counts(full: Cli) -> None:
    full.answers[f"GET {ONE}"] = {**STREAM, "headCut": {"0": 17, "1": 0, "2": -1}}
    found = full("stream", "truncate", "demo/orders", "--cut", "2.#epoch.1=2048,1=-1", typed="n\n")
    assert "2 KiB of events in the segments of the cut" in found.err
    assert "all that 1 segment before it still hold" in found.err


@pytest.mark.usefixtures("at_terminal")
def test_transactions_of_many_streams_are_not_all_counted(full: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confirmation, "COUNTED_STREAMS", 1)
    found = full("scope", "delete", "demo", "--recursive", typed="n\n")
    assert "6 open transactions of the first 1 streams; the rest is not counted" in found.err


@pytest.mark.usefixtures("at_terminal")
def test_what_is_not_there_is_refused_before_any_question(full: Cli) -> None:
    full.answers[f"GET {ONE}"] = problem(404, "stream demo/orders does not exist", "STREAM_NOT_FOUND")
    found = full("stream", "delete", "demo/orders")
    assert found.code == 1 and "STREAM_NOT_FOUND" in found.err and "Go on?" not in found.err


@pytest.mark.parametrize(("piped", "expected"), [(None, "True"), ("stdin", "False"), ("stderr", "False")])
def test_a_terminal_is_where_a_user_sees_the_question_and_can_reply(piped: str | None, expected: str) -> None:
    master, terminal = pty.openpty()
    streams: dict[str, Any] = {"stdin": terminal, "stderr": terminal}
    if piped is not None:
        streams[piped] = subprocess.PIPE
    try:
        run = subprocess.run(
            [sys.executable, "-c", "from sluice_cli.confirmation import is_terminal as is_it; print(is_it())"],
            stdout=subprocess.PIPE, text=True, check=True, timeout=60, **streams,
        )  # fmt: skip
    finally:
        os.close(master)
        os.close(terminal)
    assert run.stdout == f"{expected}\n"
