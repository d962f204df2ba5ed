"""`sluice verify` as users run it; what it finds is tested in tests/unit/verification."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from unit.cli.conftest import Cli
from unit.verification.world import CONTAINERS, STREAM, World

from sluice.domain.segment import segment_name
from sluice.lookback.source import Span
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.store import SegmentStore
from sluice_cli import session


@pytest.fixture
def world(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> World:
    """`demo/orders`, whose segment 0 is sealed with 100 bytes."""
    found = World(cli.history)

    @asynccontextmanager
    async def open_store(_route: Any, container_count: int) -> AsyncIterator[SegmentStore]:
        assert container_count == len(CONTAINERS["items"])
        yield found.store

    async def make() -> None:
        await found.create()
        found.write(0, 100)
        await found.do(found.split(0))

    monkeypatch.setattr(session, "open_store", open_store)
    cli.answers["GET /containers"] = CONTAINERS
    asyncio.run(make())
    return found


@pytest.mark.usefixtures("world")
def test_nothing_differs_ends_with_0(cli: Cli) -> None:
    found = cli("verify")
    assert found.code == 0 and found.out == "5 segments: 0 differ, 0 not answered for, 0 changing\n"


def test_a_difference_is_shown_and_ends_with_1(cli: Cli, world: World) -> None:
    world.lose(segment_name(*STREAM, 0))
    found = cli("verify", "--stream", "demo/orders")
    assert found.code == 1
    assert found.out.splitlines()[:3] == [
        "demo/orders/0.#epoch.0: missing",
        "  journal: sealed, 100 bytes",
        "  store:   no such segment",
    ]
    lines = cli("verify", "--json").lines
    assert lines[0] == {
        "type": "finding",
        "of": "demo/orders",
        "segment": "demo/orders/0.#epoch.0",
        "problem": "missing",
        "journal": "sealed, 100 bytes",
        "store": "no such segment",
        "repair": lines[0]["repair"],
        "repaired": None,
    }
    assert lines[0]["repair"].startswith("not repaired: a new empty segment")
    assert (lines[-1]["type"], lines[-1]["segments"], lines[-1]["findings"]) == ("summary", 5, 1)


def test_a_repair_says_its_reason_and_ends_with_0(cli: Cli, world: World) -> None:
    world.segment(0).sealed = False
    assert "can be sealed: the journal has it as sealed for good" in cli("verify").out
    found = cli("verify", "--repair")
    assert found.code == 0 and "repair:  sealed: the journal has it" in found.out and "1 repaired" in found.out
    assert cli("verify").code == 0


def test_silence_ends_with_2(cli: Cli, world: World) -> None:
    def silence(_moment: str, _request: str, _name: str) -> None:
        raise ConnectionFailure(Failure.TIMED_OUT)

    world.store.fault = silence
    found = cli("verify", "--json", "--patience", "1ms")
    assert found.code == 2 and {line["type"] for line in found.lines} == {"not-answered", "summary"}
    assert "not known: container" in cli("verify", "--patience", "1ms").out


def test_only_the_choice_is_compared(cli: Cli, world: World) -> None:
    world.lose(segment_name(*STREAM, 0))
    assert cli("verify", "--scope", "demo").code == 1
    unknown = cli("verify", "--scope", "other")
    assert unknown.code == 1 and "knows no scope other" in unknown.err and unknown.out == ""
    assert "knows no stream demo/x" in cli("verify", "--stream", "demo/x").err
    assert cli("verify", "--scope", "demo", "--stream", "demo/orders").code == 2
    assert cli("verify", "--stream", "demo").code == 2


@pytest.mark.usefixtures("world")
def test_a_trimmed_journal_without_a_snapshot_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    source, spans = cli.history.source, cli.history.source.spans

    def trimmed(*arguments: Any, **named: Any) -> list[Span]:
        return [Span(s.topic, s.partition, 1, max(1, s.end)) for s in spans(*arguments, **named)]

    monkeypatch.setattr(source, "spans", trimmed)
    found = cli("verify")
    assert found.code == 1 and "lacks its records before offset 1" in found.err


@pytest.mark.usefixtures("world")
def test_without_the_api_nothing_is_compared(cli: Cli) -> None:
    cli.answers["GET /containers"] = httpx.Response(503, json={"title": "No", "detail": "not ready"})
    assert cli("verify").code in (1, 3)


def test_a_key_of_tokens_that_is_given_twice_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    cli.answers["GET /containers"] = CONTAINERS
    monkeypatch.setenv("SLUICE_TOKEN_KEY", "k-e-y")
    monkeypatch.setenv("SLUICE_TOKEN_KEY_FILE", "/run/key")
    found = cli("verify")
    assert found.code == 2 and "SLUICE_TOKEN_KEY and SLUICE_TOKEN_KEY_FILE are both set" in found.err
    assert "k-e-y" not in found.err
