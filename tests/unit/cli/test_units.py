"""Amounts, times, names and cuts as people write and read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluice.lookback import times
from sluice.lookback.errors import InvalidTextError
from sluice_cli import policies, units
from sluice_cli.errors import UsageError

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "size"), [("17", 17), ("1KiB", 1024), ("1.5 GiB", 1610612736), ("100mib", 104857600), ("2TiB", 2**41)]
)
def test_sizes(text: str, size: int) -> None:
    assert units.size_of(text) == size


@pytest.mark.parametrize(
    ("text", "ms"), [("500ms", 500), ("30s", 30_000), ("10m", 600_000), ("1.5h", 5_400_000), ("2d", 172_800_000)]
)
def test_durations(text: str, ms: int) -> None:
    assert times.duration_of(text) == ms


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1XiB", "10", "1 2s"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(InvalidTextError):
        times.duration_of(text)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("now", NOW),
        ("-10m", NOW - 600_000),
        ("1700000000123", 1_700_000_000_123),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
        ("2023-11-14T22:13:20.123", 1_700_000_000_123),
        ("2023-11-14 23:13:20+01:00", 1_700_000_000_000),
        ("2023-11-14", 1_699_920_000_000),
    ],
)
def test_times(text: str, at: int) -> None:
    assert times.time_of(text, NOW) == at


@pytest.mark.parametrize(
    "text",
    [
        "yesterday", "-10", "12", "2023-13-01", "1790000000000000", "1790000000000000000", "9" * 5000, "-3000000d",
        "1969-12-31", "0001-01-01T00:00:00+14:00", f"-{'9' * 400}.5d", "9999-12-31T23:59:59-14:00",
    ],
)  # fmt: skip
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(InvalidTextError):
        times.time_of(text, NOW)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("10m", NOW - 600_000),
        ("1.5h", NOW - 5_400_000),
        ("2023-11-14T22:13:20Z", 1_700_000_000_000),
    ],
)
def test_how_far_back(text: str, at: int) -> None:
    assert times.since_of(text, NOW) == at


@given(st.integers(min_value=0, max_value=253_402_300_799_999))
def test_a_time_that_is_shown_reads_the_same(at: int) -> None:
    assert times.time_of(times.show_time(at), NOW) == at


def test_a_time_outside_the_calendar_is_a_number() -> None:
    assert times.show_time(10**17) == "100000000000000000" and times.show_time(-1) == "-1"


@given(st.integers(min_value=0, max_value=10**15))
def test_a_duration_that_is_shown_reads_the_same(ms: int) -> None:
    assert times.duration_of(units.show_duration(ms)) == ms


@given(st.integers(min_value=0, max_value=2**31 - 1), st.integers(min_value=0, max_value=2**31 - 1))
def test_a_segment_that_is_shown_reads_the_same(epoch: int, number: int) -> None:
    id = epoch << 32 | number
    assert units.segment_of(units.segment_text(id)) == id == units.segment_of(str(id))


def test_cuts() -> None:
    assert units.cut_of(["0=10, 1.#epoch.1=-1", "7=0"]) == {"0": 10, "4294967297": -1, "7": 0}
    for wrong in ([], ["0"], ["0=-2"], ["=1"], ["x=1"]):
        with pytest.raises(UsageError):
            units.cut_of(wrong)


def test_ranges() -> None:
    assert units.ranges_of(["0..0.5,0.5..1"]) == [[0.0, 0.5], [0.5, 1.0]]
    for wrong in ("0", "0-1", "a..b"):
        with pytest.raises(UsageError):
            units.ranges_of([wrong])


@pytest.mark.parametrize("text", ["demo", "demo/", "/orders", "a/b/c"])
def test_what_is_no_name_of_a_stream(text: str) -> None:
    with pytest.raises(UsageError):
        units.scoped(text)


def test_scaling() -> None:
    fixed = {"type": "fixed", "targetRate": 0, "scaleFactor": 0}
    assert policies.scaling_of(None, None, None, None) == {**fixed, "minSegments": 1}
    assert policies.scaling_of(4, None, None, None) == {**fixed, "minSegments": 4}
    by_events = {"type": "events", "targetRate": 100, "scaleFactor": 2, "minSegments": 1}
    assert policies.scaling_of(None, "events:100", None, None) == by_events
    by_bytes = {"type": "kbytes", "targetRate": 512, "scaleFactor": 4, "minSegments": 3}
    assert policies.scaling_of(None, "kbytes:512", 4, 3) == by_bytes
    assert policies.show_scaling(by_bytes) == "kbytes:512 per segment and second, factor 4, at least 3"
    wrong = [
        (None, None, 2, None),
        (1, "events:1", None, None),
        (None, "events", None, None),
        (None, "mb:1", None, None),
    ]
    for arguments in wrong:
        with pytest.raises(UsageError):
            policies.scaling_of(*arguments)


def test_retention_reads_as_it_is_shown() -> None:
    for text in ("size=1 GiB..10 GiB", "time=1h..2d", "size=100 MiB", "none"):
        assert policies.show_retention(policies.retention_of(text)) == text
    assert policies.retention_of("size=1GiB..10GiB") == {"type": "size", "min": 2**30, "max": 10 * 2**30}
    for wrong in ("1GiB", "age=1h", "size=..1GiB", "time=1GiB", "size=10GiB..1GiB", "time=1d..1h"):
        with pytest.raises((UsageError, InvalidTextError)):
            policies.retention_of(wrong)
