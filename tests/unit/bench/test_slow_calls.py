"""Which lone calls count as slow, and between which records they were."""

import pytest

from bench.figures import Figures, SlowCalls, Span
from bench.slow_calls import Appended, summarise
from bench.stopwatch import WARM_UP_CALLS, own_times


def test_a_slow_call_was_slow_in_the_longest_pause_between_its_records() -> None:
    records = [
        *(Appended(999, "journal"), Appended(1002, "requests.streams"), Appended(1060, "journal")),
        *(Appended(1061, "journal"), Appended(2050, "requests.streams"), Appended(9000, "journal")),
    ]
    calls = {
        "ping": Figures(200, 1.0, 2.0, slow=[Span(1000.5, 1062.0), Span(2000.0, 2052.0)]),
        "load": Figures(9, per_s=1),
    }
    assert summarise(calls, records) == [
        SlowCalls("ping", 0.01, 61.5, {"requests.streams → journal": 1, "client → requests.streams": 1})
    ]


def test_calls_of_more_than_five_times_the_median_are_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(100))
    monkeypatch.setattr("bench.stopwatch.time.time", lambda: next(now))
    took_s = [9.0] * WARM_UP_CALLS + [0.001, 0.005, 0.001, 0.006, 0.001]
    fourth = Span((WARM_UP_CALLS + 3) * 1000, (WARM_UP_CALLS + 4) * 1000)
    assert own_times(lambda number: took_s[number], 5).slow == [fourth]
