"""What another policy would have done, and how users ask for it."""

from typing import Any

import msgspec
import pytest
from support.decisions import halves, hot, sampled

from retention_spark.what_if import beside, main
from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.ids import StreamId
from sluice.domain.stream.retention import RetentionReport, SizedCut, gone
from sluice.domain.stream.traffic import Direction, ScaleReport
from sluice.policies.policy_parser import UnreadableError, retention_of, scaling_of
from sluice.policies.replay import OtherScaling, Record, RetentionReplay, ScalingReplay, is_about, replayed
from sluice.policies.rules import RetentionRule, ScaleRule

NOW = 1_700_000_000_000
MINUTE = 60_000


def records(*reports: ScaleReport | RetentionReport) -> list[Record]:
    return [Record(report.at, msgspec.json.encode(report)) for report in reports]


def grown(minutes: int) -> list[Record]:
    """A stream that grows by 100 bytes a minute."""
    return records(*(sampled("x", NOW + i * MINUTE, 100 * i) for i in range(1, minutes + 1)))


def sizes_kept(policy: RetentionPolicy) -> list[int]:
    replay = RetentionReplay(RetentionRule(pause_ms=0), policy)
    rows = replayed(replay, grown(30), NOW + 31 * MINUTE)
    return [msgspec.json.decode(row.command)["cut"]["0"] for row in rows if row.command]


def test_a_smaller_minimum_truncates_further() -> None:
    assert sizes_kept(RetentionPolicy(RetentionType.SIZE, 2000, 1 << 62))[-1] == 1000
    assert sizes_kept(RetentionPolicy(RetentionType.SIZE, 500, 1 << 62))[-1] == 2500


def test_truncations_count_as_carried_out() -> None:
    cuts = sizes_kept(RetentionPolicy(RetentionType.SIZE, 500, 1 << 62))
    assert cuts == sorted(set(cuts)) and len(cuts) > 10


def test_a_reader_that_the_replay_has_truncated_past_stands_at_its_head() -> None:
    """Were it still where it was, it would seem to hold what is gone, and the maximum would take more and more."""
    reader = SizedCut({0: 50}, 50)
    readers: dict[str, Any] = {"subscribers": {"s/g": reader}, "bound": reader}
    sizes = [*range(100, 601, 100), 600, 600, 600]
    given = records(*(sampled("x", NOW + i * MINUTE, size, **readers) for i, size in enumerate(sizes)))
    policy = RetentionPolicy(RetentionType.SIZE, 100, 350)
    rows = replayed(RetentionReplay(RetentionRule(pause_ms=0), policy), given, NOW + 10 * MINUTE)
    acted = [(row.code, msgspec.json.decode(row.command)["cut"]["0"]) for row in rows if row.command]
    assert acted == [("consumed", 50), ("beyond-maximum", 100), ("beyond-maximum", 200), ("beyond-maximum", 300)]
    assert rows[-1].reason == "not truncated: reader group s/g stands 0 bytes after the head"


def test_time_passes_between_records() -> None:
    policy = RetentionPolicy(RetentionType.TIME, 10 * MINUTE + MINUTE // 2, 1 << 62)
    given = records(*(sampled("x", NOW + i * MINUTE, 100) for i in range(1, 12)))
    rows = replayed(RetentionReplay(RetentionRule(tick_ms=MINUTE // 2), policy), given, NOW + 60 * MINUTE)
    assert [row.at for row in rows if row.command] == [NOW + 11 * MINUTE + MINUTE // 2]


@pytest.mark.parametrize("given", [True, False])
def test_a_stream_that_was_deleted_and_made_anew_has_a_head_of_its_own(given: bool) -> None:
    first = [sampled("x", NOW + i * MINUTE, 100 * i) for i in range(1, 5)]
    end = [gone(StreamId("s", "x"), "g", "test", NOW + 5 * MINUTE)] if given else []
    life: dict[str, Any] = {"head": SizedCut({7: 0}, 0), "ranges": {7: (0.0, 1.0)}, "creation_id": "anew"}
    anew = [sampled("x", NOW + i * MINUTE, 0, sample=SizedCut({7: 100 * i}, 100 * i), **life) for i in range(6, 9)]
    policy = RetentionPolicy(RetentionType.SIZE, 50, 1 << 62)
    rows = replayed(RetentionReplay(RetentionRule(pause_ms=0), policy), records(*first, *end, *anew), NOW + 9 * MINUTE)
    assert [msgspec.json.decode(row.command)["cut"] for row in rows if row.command][-1] == {"7": 700}


def test_what_the_query_could_not_decide_on_is_passed_over() -> None:
    odd = [b'{"stream":"x"}', b"", b"\xff", msgspec.json.encode(sampled("x", NOW, 500, ranges={}))]
    replay = RetentionReplay(RetentionRule(pause_ms=0), RetentionPolicy(RetentionType.SIZE, 100, 1 << 62))
    given = [*(Record(NOW, value) for value in odd), *grown(3)]
    assert [row.command for row in replayed(replay, given, NOW + 4 * MINUTE) if row.command]
    assert [is_about(Record(NOW, value), "x") for value in odd] == [True, False, False, True]


def test_a_larger_minimum_of_segments_does_not_merge() -> None:
    given = records(*(halves("x", NOW, segment, Direction.DOWN) for segment in (0, 1)))
    merged = replayed(ScalingReplay(ScaleRule(), OtherScaling()), given, NOW + MINUTE)
    kept = replayed(ScalingReplay(ScaleRule(), OtherScaling(min_segments=2)), given, NOW + MINUTE)
    assert [row.code for row in merged][-1] == "merge"
    assert [row.code for row in kept] == ["at-minimum"]


def test_a_larger_factor_splits_into_more() -> None:
    given = records(hot("x", NOW, splits=8))
    (row, *_) = replayed(ScalingReplay(ScaleRule(), OtherScaling(scale_factor=4)), given, NOW + 1)
    assert len(msgspec.json.decode(row.command)["ranges"]) == 4


def test_both_stand_beside_each_other() -> None:
    rows = replayed(ScalingReplay(ScaleRule(), OtherScaling()), records(hot("x", NOW)), NOW + 1)
    lines = list(beside([], rows, "factor=4"))
    assert lines[0].endswith("| with factor=4")
    assert "0 decisions" in lines[1] and "1 of them to act" in lines[1]
    assert lines[-1].lstrip().startswith("|") and "split" in lines[-1]


def test_how_policies_are_written() -> None:
    assert retention_of("size=100MiB..1GiB") == RetentionPolicy(RetentionType.SIZE, 100 * 2**20, 2**30)
    assert retention_of("time=90m") == RetentionPolicy(RetentionType.TIME, 90 * MINUTE, 2**63 - 1)
    assert scaling_of("min=2, factor=3,cooldown=30s") == OtherScaling(2, 3, 30_000)


@pytest.mark.parametrize(
    "text", ["size", "size=", "size=1x", "weight=3", "time=1", "time=1h..", "size=-1", "size=1GiB..1MiB"]
)
def test_what_is_no_retention(text: str) -> None:
    with pytest.raises(UnreadableError):
        retention_of(text)


@pytest.mark.parametrize("text", ["", "min", "min=2s", "weight=3", "min=2,,"])
def test_what_is_no_scaling(text: str) -> None:
    with pytest.raises(UnreadableError):
        scaling_of(text)


def test_the_usage_says_so_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["s/x"]) == 2
    assert "never its rate" in " ".join(capsys.readouterr().err.split())
    assert main(["s/x", "target=3"]) == 2
    assert "'target=3': what another target rate" in capsys.readouterr().err
