"""`sluice stream scale`, and what an update does to a scaling policy."""

from typing import Any

import httpx
import pytest
from support.cpu import least_cpu_s
from unit.cli.conftest import Cli, problem
from unit.cli.shown import CONFIG, FIXED, ONE, SEGMENTS, STREAM

from sluice.domain.config import MAX_SEGMENTS
from sluice.domain.stream.scale import equal_ranges
from sluice_cli.commands import scaling
from sluice_cli.commands.scaling import even

EVENTS = {"type": "events", "targetRate": 100, "scaleFactor": 4, "minSegments": 8}


def test_a_scale_splits_evenly_and_waits(cli: Cli) -> None:
    progress = iter((False, True))
    cli.answers[f"GET {ONE}"] = STREAM
    cli.answers[f"POST {ONE}/scale"] = httpx.Response(
        202, json={"epoch": 0, "segments": []}, headers={"Sluice-Request": "s-1"}
    )
    cli.answers[f"GET {ONE}/scales/0"] = lambda _: httpx.Response(200, json={"epoch": 0, "done": next(progress)})
    found = cli("stream", "scale", "demo/orders", "--to", "4", "--json").document
    assert found == {"request": "s-1", "epoch": 0, "segments": [], "done": True}
    body = next(body for call, body in cli.calls if call.startswith("POST"))
    assert body == {"sealed": [0, 1], "ranges": [[0.0, 0.25], [0.25, 0.5], [0.5, 0.75], [0.75, 1.0]]}


def test_a_look_that_says_nothing_of_a_scale_is_no_end_and_one_that_takes_too_long_is_named(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "LOOK_S", 0)
    looks = iter((problem(503, "away"), problem(429, "quota"), httpx.Response(200, json={"epoch": 0, "done": True})))
    cli.answers[f"GET {ONE}"] = STREAM
    cli.answers[f"POST {ONE}/scale"] = httpx.Response(
        202, json={"epoch": 0, "segments": []}, headers={"Sluice-Request": "s-1"}
    )
    cli.answers[f"GET {ONE}/scales/0"] = lambda _: next(looks)
    assert cli("stream", "scale", "demo/orders", "--to", "4", "--json").document["done"]
    monkeypatch.setattr(scaling, "WAIT_S", 0)
    cli.answers[f"GET {ONE}/scales/0"] = {"epoch": 0, "done": False}
    found = cli("stream", "scale", "demo/orders", "--to", "4")
    assert found.code == 3 and "still being scaled after 0 s (request s-1)" in found.err
    assert "sluice stream scale-status demo/orders 0" in found.err


def test_a_scale_leaves_alone_what_is_as_wanted(cli: Cli) -> None:
    uneven = [*SEGMENTS[:1], {"id": 5, "low": 0.5, "high": 0.75}, {"id": 6, "low": 0.75, "high": 1.0}]
    cli.answers[f"GET {ONE}"] = {**STREAM, "segments": uneven}
    cli.answers[f"POST {ONE}/scale"] = {"epoch": 1, "segments": []}
    assert cli("stream", "scale", "demo/orders", "--to", "2", "--no-wait").code == 0
    assert cli.calls[-1][1] == {"sealed": [5, 6], "ranges": [[0.5, 1.0]]}
    cli.answers[f"GET {ONE}"] = STREAM
    assert cli("stream", "scale", "demo/orders", "--to", "2", "--json").document == {"segments": [], "done": True}


def test_a_scale_by_hand(cli: Cli) -> None:
    cli.answers[f"POST {ONE}/scale"] = {"epoch": 1, "segments": []}
    arguments = ["--seal", "0,1.#epoch.1", "--into", "0..0.3", "--into", "0.3..1", "--no-wait"]
    assert cli("stream", "scale", "demo/orders", *arguments).code == 0
    assert cli.calls[-1][1] == {"sealed": [0, 4294967297], "ranges": [[0.0, 0.3], [0.3, 1.0]]}


def test_a_stream_without_segments_is_not_scaled(cli: Cli) -> None:
    cli.answers[f"GET {ONE}"] = {**STREAM, "state": "SEALED", "segments": []}
    for more in ([], ["--json"]):
        found = cli("stream", "scale", "demo/orders", "--to", "4", *more)
        assert found.code == 1 and found.out == "" and "it is SEALED" in found.err
    assert {call for call, _ in cli.calls} == {f"GET {ONE}"}


def test_a_scale_has_a_limit_and_is_put_together_quickly(cli: Cli) -> None:
    assert scaling.MAX_SEGMENTS == MAX_SEGMENTS
    assert cli("stream", "scale", "demo/orders", "--to", str(MAX_SEGMENTS + 1)).code == 2 and cli.calls == []
    ranges = equal_ranges(MAX_SEGMENTS - 1)
    segments = [{"id": id, "low": low, "high": high} for id, (low, high) in enumerate(ranges)]
    body = even(segments, MAX_SEGMENTS)
    assert least_cpu_s([lambda: even(segments, MAX_SEGMENTS)] * 3) < 1
    assert len(body["sealed"]) == MAX_SEGMENTS - 1 and len(body["ranges"]) == MAX_SEGMENTS


@pytest.mark.parametrize(
    ("present", "given", "sent"),
    [
        (EVENTS, ["--scale", "events:200"], {**EVENTS, "targetRate": 200}),
        (
            EVENTS,
            ["--scale", "kbytes:7", "--min", "3"],
            {**EVENTS, "type": "kbytes", "targetRate": 7, "minSegments": 3},
        ),
        (EVENTS, ["--factor", "3"], {**EVENTS, "scaleFactor": 3}),
        (EVENTS, ["--min", "3"], {**EVENTS, "minSegments": 3}),
        (EVENTS, ["--segments", "3"], {**FIXED, "minSegments": 3}),
        (CONFIG["scaling"], ["--scale", "events:100"], {**EVENTS, "scaleFactor": 2, "minSegments": 1}),
        (CONFIG["scaling"], ["--scale", "events:100", "--factor", "4", "--min", "8"], EVENTS),
    ],
)
def test_an_update_keeps_what_is_not_given_of_a_scaling(cli: Cli, present: Any, given: list[str], sent: Any) -> None:
    cli.answers[f"GET {ONE}"] = {**STREAM, "config": {**CONFIG, "scaling": present}}
    cli.answers[f"PUT {ONE}"] = {"status": "SUCCESS"}
    assert cli("stream", "update", "demo/orders", *given).code == 0
    assert cli.calls[-1][1] == {**CONFIG, "scaling": sent}


def test_a_fixed_number_of_segments_has_no_factor(cli: Cli) -> None:
    cli.answers[f"GET {ONE}"] = STREAM
    found = cli("stream", "update", "demo/orders", "--factor", "3")
    assert found.code == 2 and "fixed" in found.err and [call for call, _ in cli.calls] == [f"GET {ONE}"]
    for wrong in (["--segments", "2", "--min", "1"], ["--segments", "2", "--scale", "events:1"], ["--scale", "much"]):
        cli.calls.clear()
        assert cli("stream", "update", "demo/orders", *wrong).code == 2 and cli.calls == []


def test_rates_are_asked_for_until_they_are_known(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice_cli.rates.LOOK_S", 0)
    unknown = {"at": 1, "segments": [{"id": 0}], "complete": False}
    known = {"at": 2, "complete": True, "segments": [{"id": 0, "bytesPerS": 2048.0, "eventsPerS": 7.5, "length": 9}]}
    answers = iter([unknown, unknown, known])
    cli.answers["GET /scopes/demo/streams/orders/rates"] = lambda _request: httpx.Response(200, json=next(answers))
    found = cli("stream", "rates", "demo/orders")
    assert "2 KiB" in found.out and "7.5" in found.out and len(cli.calls) == 3
