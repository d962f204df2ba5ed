"""What a stream's scaling or retention would have come to with another policy, beside what it came to.

The recorded reports are replayed twice: with the other policy, and with the one that each report was made under. Where
these two first act differently is the first difference. What really happened is no measure of that: decisions were made
at the times of batches, replayed ones are made at the times of reports. All times in epoch ms. Pure.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from sluice.domain.config import RetentionPolicy
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.retention import RetentionReport
from sluice.policies.policy_parser import NO_TARGET
from sluice.policies.replay import Decided, OtherScaling, Policy, Record, Replay, RetentionReplay, ScalingReplay
from sluice.policies.rules import Rules

MAX_POINTS = 1_000
"""Of the lines of kept bytes."""

MAX_ITEMS = 2_000
"""Of what would have been decided, and of what was."""

NO_REPORTS = "no report of this stream was recorded in this time, so there is nothing to replay"
NO_DIFFERENCE = "nothing would have been done differently"
ONLY_UP_TO = (
    "this holds up to the first difference: from then on the stream would have had other segments, and no report "
    "describes their load"
)
BEFORE_SPAN = "the first difference is before the requested time, so nothing of this is certain"
TOO_MANY = f"of what would have been decided only the first {MAX_ITEMS} are shown; ask for a shorter time"
CARRIED_OUT = (
    "truncations count as carried out, each on what the one before it has left; readers are where they were, or at the "
    "head if that is further, and cuts that were truncated by hand are not taken into account"
)


def not_as_recorded(unchanged: int, recorded: int) -> str:
    """The note that the replay of the policy in force is not what happened."""
    return (
        f"replayed with nothing changed, the reports lead to {unchanged} actions, and {recorded} are recorded: "
        "decisions are made on several reports at a time, and what was done by hand is not replayed"
    )


class WhatIfItem(msgspec.Struct, frozen=True, omit_defaults=True):
    """A decision; `segments` is how many there are once it is carried out, `passing` as of a Verdict."""

    at: int
    code: str
    reason: str
    segments: int | None = None
    acts: bool = False
    passing: bool = False


class KeptBytes(msgspec.Struct, frozen=True):
    """Bytes between head and end of the stream at these times, as they were and as they would have been."""

    at: list[int]
    happened: list[int]
    would: list[int]


class WhatIf(msgspec.Struct, frozen=True):
    """`would` are decisions since `since`; `first_difference` may be before that; `kept` is there for retention."""

    kind: DecisionKind
    since: int
    until: int
    happened: list[WhatIfItem]
    would: list[WhatIfItem]
    first_difference: int | None
    kept: KeptBytes | None
    notes: list[str]


class WhatIfReplay:
    """Takes in the reports of one stream in the order of their topic, then says what would have been."""

    def __init__(self, rules: Rules, policy: Policy, since: int, until: int) -> None:
        self._since, self._until = since, until
        self._kept = _Kept(since)
        self._would: Replay
        self._was: Replay
        if isinstance(policy, RetentionPolicy):
            self._kind = DecisionKind.RETENTION
            self._would, self._was = RetentionReplay(rules.retention, policy), RetentionReplay(rules.retention, None)
        else:
            self._kind = DecisionKind.SCALE
            self._would = ScalingReplay(rules.scale, policy)
            self._was = ScalingReplay(rules.scale, OtherScaling())

    def observe(self, record: Record) -> None:
        """Take in the next report."""
        self._would.observe(record)
        self._was.observe(record)
        if isinstance(self._would, RetentionReplay) and self._would.begun:
            self._kept.observe(record, self._would)

    def result(self, happened: Iterable[WhatIfItem]) -> WhatIf:
        """What would have been; `happened` are the recorded decisions of the span."""
        for replay in (self._would, self._was):
            replay.end(self._until)
        difference = first_difference(self._was.decided, self._would.decided)
        recorded = list(happened)
        would = [item_of(one) for one in self._would.decided if one.at >= self._since]
        notes = list(self._notes(difference, sum(one.acts for one in recorded)))
        if len(would) > MAX_ITEMS:
            notes.append(TOO_MANY)
        return WhatIf(
            kind=self._kind,
            since=self._since,
            until=self._until,
            happened=recorded,
            would=would[:MAX_ITEMS],
            first_difference=difference,
            kept=self._kept.lines() if self._kind is DecisionKind.RETENTION else None,
            notes=notes,
        )

    def _notes(self, difference: int | None, recorded: int) -> Iterator[str]:
        if not self._was.begun:
            yield NO_REPORTS
            return
        if difference is None:
            yield NO_DIFFERENCE
        unchanged = sum(one.at >= self._since for one in self._was.decided if one.verdict.request is not None)
        if unchanged != recorded:
            yield not_as_recorded(unchanged, recorded)
        if self._kind is DecisionKind.RETENTION:
            yield CARRIED_OUT
            return
        if difference is not None:
            yield ONLY_UP_TO if difference >= self._since else BEFORE_SPAN
        yield NO_TARGET


def item_of(one: Decided) -> WhatIfItem:
    verdict = one.verdict
    segments = verdict.numbers.get("segmentsAfter")
    return WhatIfItem(one.at, verdict.code, verdict.reason, segments, verdict.request is not None, verdict.passing)


def first_difference(was: Sequence[Decided], would: Sequence[Decided]) -> int | None:
    """When the first action is that the two do not share, None if they act alike."""
    for one, other in zip_longest(_actions(was), _actions(would)):
        if one != other:
            return min(action[0] for action in (one, other) if action is not None)
    return None


def _actions(decided: Iterable[Decided]) -> Iterator[tuple[int, Any]]:
    """When something is requested, and what."""
    for one in decided:
        if one.verdict.request is not None:
            # The command names the policy that asks for it, which is another one in any case.
            yield one.at, msgspec.structs.replace(one.verdict.request[1], policy=None)


class _Kept:
    def __init__(self, since: int) -> None:
        self._since = since
        self._points: list[tuple[int, int, int]] = []
        self._report = msgspec.json.Decoder(RetentionReport)

    def observe(self, record: Record, would: RetentionReplay) -> None:
        """Behind the replay: its head is what would be left after this report."""
        if record.at < self._since:
            return
        try:
            report = self._report.decode(record.value)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # The replay has logged it.
            return
        if report.sample is None or would.head is None:
            return
        end = report.sample.size
        self._points.append((record.at, end - report.head.size, end - would.head.size))

    def lines(self) -> KeptBytes:
        """Every so many points, and the last one."""
        step = -(-len(self._points) // MAX_POINTS) or 1
        points = self._points[::-step][::-1]
        return KeptBytes([p[0] for p in points], [p[1] for p in points], [p[2] for p in points])
