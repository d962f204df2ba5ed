"""What the measurements of CPU time and idleness make of what they read."""

import os
import time

import pytest

from bench.cpu_calls import CLIENT, CpuMeter, Kind
from bench.figures import Figures
from bench.idle import per_minute
from bench.stopwatch import WARM_UP_CALLS, own_times


def _work(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_cpu_time_of_a_call_is_that_of_the_process_shared_out() -> None:
    meter = CpuMeter({"this one": [os.getpid()]})
    measured = meter.measure(Kind("work", 20, lambda _number: _work(0.01)))
    assert measured.calls == 20
    # Ticks are of 10 ms, and other threads of this process may work meanwhile.
    assert 9_000 <= measured.us["this one"] <= 30_000


def test_what_a_process_takes_without_calls_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([0.0, 5.0, 5.0, 12.0])
    clock = iter([0.0, 10.0, 10.0, 14.0])
    monkeypatch.setattr("bench.cpu_calls.cpu_by_name", lambda roots: dict.fromkeys(roots, next(used)))
    monkeypatch.setattr("bench.cpu_calls.time.perf_counter", lambda: next(clock))
    meter = CpuMeter({"Kafka": [1]})
    assert meter.idle(0.0) == {"Kafka": 50.0}
    # 7 seconds within 4, of which half a core would have been used anyway.
    assert meter.measure(Kind("call", 1000, lambda _number: None)).us == {"Kafka": 5000, CLIENT: 5000}


def test_records_are_counted_per_minute_and_topics_without_any_left_out() -> None:
    before, after = {"journal": 100, "commit": 7}, {"journal": 102, "commit": 7, "new": 60}
    assert per_minute(before, after, 120.0) == {"new": 30.0, "journal": 1.0}


def test_calls_that_time_themselves_count_only_what_they_say() -> None:
    seconds = [9.0] * WARM_UP_CALLS + [0.001, 0.002, 0.003]
    assert own_times(lambda number: seconds[number], 3) == Figures(3, 2.0, 3.0)
