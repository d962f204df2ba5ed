"""What the measurement of growth says of its figures: the table, what a stream costs, and which targets are missed."""

import os
import subprocess
import sys

import pytest

from bench.figures import Figures
from bench.growth_table import Grown, Snapshots, Started, misses, per_stream
from bench.processor_time import memory_mib

GATEWAY = "api-gateway-0"


def grown(streams: int, *, seconds: float = 1.0, mib: int = 100, p50_ms: float = 2.0, failed: str = "") -> Grown:
    figures = Figures(failed=failed) if failed else Figures(10, p50_ms, 9.0)
    started = Started(seconds, streams / 10_000, mib, mib + 10)
    return Grown(streams, 2 * streams, streams // 1000, Snapshots(1.0, 0.5), {GATEWAY: started}, {"read": figures}, 0.5)


def test_a_stream_costs_what_more_of_them_take() -> None:
    kib, us = per_stream([grown(1000, mib=100), grown(11_000, mib=140)])[GATEWAY]
    assert (round(kib, 3), round(us)) == (4.096, 100)
    assert per_stream([grown(1000)]) == {}


@pytest.mark.parametrize(
    ("last", "miss"),
    [
        (grown(1_000_000, seconds=15.1), "ready after 15.1 s, target 15"),
        (grown(100_000, seconds=3.1), "ready after 3.1 s, target 3"),
        (grown(1_000_000, mib=1015), "1,025 MiB, target 1,024"),
        (grown(1_000_000, p50_ms=2.5), "read: 1.25 times as long at 1,000,000 streams, target 1.2"),
        (grown(1_000_000, failed="UNAVAILABLE"), "read at 1,000,000 streams: UNAVAILABLE"),
    ],
)
def test_a_missed_target_is_named_with_what_was_measured(last: Grown, miss: str) -> None:
    [found] = misses([grown(1000), last])
    assert miss in found


def test_targets_that_are_just_reached_are_not_missed() -> None:
    assert misses([grown(1000), grown(1_000_000, seconds=15.0, mib=1014, p50_ms=2.4)]) == []
    assert misses([grown(10_000, seconds=99.0)]) == []


def test_the_memory_of_a_process_is_what_it_has_now_and_what_it_had_at_most() -> None:
    code = "import sys; data = b'x' * (64 << 20); del data; print('ready', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        now, most = memory_mib(process.pid)
    assert most >= now + 60
    assert memory_mib(os.getpid())[0] > 0
