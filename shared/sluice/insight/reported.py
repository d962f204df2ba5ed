"""What is known of a stream from reports: its hot and cold segments, and the cuts that retention may take.

retention-spark keeps this. Here the reports of the last 7 days are folded by the same functions.
"""

from collections.abc import Collection
from typing import Literal

from sluice.domain.policy import retention, scaling
from sluice.domain.policy.retention import RetentionState
from sluice.domain.policy.scaling import Load, ScalingState
from sluice.domain.stream.retention import RetentionReport
from sluice.domain.stream.traffic import Direction, ScaleReport
from sluice.insight.shown import Shown, text


class SegmentLoad(Shown):
    """A segment with too much or too little to do, by reports that still hold."""

    segment: int = text("Its id.")
    load: Literal["hot", "cold", "silent"] = text("Above its target rate, below half of it, or not written to at all.")
    since: int = text("When the first of the reports that say so one after the other was made, epoch ms.")
    reported_at: int = text("When the last one was made, epoch ms.")


class RetentionSetModel(Shown):
    """The cuts that a truncation may take, the earliest first; both columns are equally long."""

    at: list[int] = text("When each was sampled, epoch ms.")
    bytes: list[int] = text("How many bytes lie between the head of the stream and each.")


class ReportedModel(Shown):
    """What is known of a stream from reports."""

    loads: list[SegmentLoad] = text("Its hot and cold segments, by id.")
    load_reported_at: int | None = text("When the last report on its load was made, epoch ms.", default=None)
    retention_reported_at: int | None = text("When the last report on its retention was made, epoch ms.", default=None)
    retention_set: RetentionSetModel
    searched_to: int = text("The reports since then are taken in, epoch ms.")
    complete: bool = text("Whether those are the reports of all 7 days.")


class Reported:
    """Folds the reports of one stream, in the order in which they came; `segments` are those that are written to."""

    def __init__(self, creation_id: str, segments: Collection[int]) -> None:
        self._creation_id = creation_id
        self._segments = segments
        self._scaling: ScalingState | None = None
        self._retention: RetentionState | None = None
        self._since: dict[int, int] = {}
        self._load_at: int | None = None

    def load(self, report: ScaleReport, now: int) -> None:
        if report.creation_id != self._creation_id:
            return
        before = self._scaling.loads if self._scaling is not None else {}
        known = before.get(report.segment)
        self._scaling = scaling.observe(self._scaling, report, now)
        self._load_at = max(self._load_at or 0, report.at)
        goes_on = known is not None and known.holds(now) and _word(known) == _word(report)
        if not goes_on:
            self._since[report.segment] = report.at

    def retention(self, report: RetentionReport) -> None:
        if report.creation_id == self._creation_id and not retention.tells_rates_only(self._retention, report):
            self._retention = retention.observe(self._retention, report)

    def shown(self, now: int, searched_to: int, complete: bool) -> ReportedModel:
        loads = self._scaling.loads if self._scaling is not None else {}
        known = self._retention
        cuts = known.sampled.references() if known is not None and known.policy is not None else ()
        head = known.head.size if known is not None else 0
        return ReportedModel(
            loads=[
                SegmentLoad(segment=id, load=_word(load), since=self._since[id], reported_at=load.at)
                for id, load in sorted(loads.items())
                if id in self._segments and load.holds(now)
            ],
            load_reported_at=self._load_at,
            retention_reported_at=known.last_report[0] if known is not None else None,
            retention_set=RetentionSetModel(at=[one.at for one in cuts], bytes=[one.size - head for one in cuts]),
            searched_to=searched_to,
            complete=complete,
        )


def _word(load: Load | ScaleReport) -> Literal["hot", "cold", "silent"]:
    if load.silent:
        return "silent"
    return "hot" if load.direction is Direction.UP else "cold"
