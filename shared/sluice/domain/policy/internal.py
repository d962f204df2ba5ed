"""The streams that Pravega and its clients keep for themselves: what may be dropped of each, whatever policy says.

A policy for all streams that reached these, too, had to be taken back from Pravega (users-ask 2.7); left alone they
grew for ever. So each kind has a rule of its own, and `retention.decide_retention` leaves them alone.
Rules: background-and-other-workflows 3.1 to 3.6, users-ask 2.7.
"""

from collections.abc import Mapping, Sequence
from enum import Enum

import msgspec

from sluice.domain.cut_order import Ranges, is_at_or_before
from sluice.domain.ids import StreamId
from sluice.domain.names import MARK_PREFIX, READER_GROUP_PREFIX, REQUEST_STREAM, SYSTEM_SCOPE
from sluice.domain.stream.upper_bound import Watermark
from sluice.domain.wording import amount

WATERMARKS_KEPT = 2
"""The attribute of a mark segment that says where its readers may begin is one watermark behind the last (3.6)."""


class InternalRule(Enum):
    """What is dropped of an internal stream, as a sentence."""

    WATERMARKS = "watermarks go once no reader can stand before them"
    STATE = "the clients of a reader group compact its state themselves"
    REPORTS = "reports of load go once they were passed on"


class InternalDecision(msgspec.Struct, frozen=True):
    """`cut` is where to truncate, None for not at all."""

    reason: str
    cut: dict[int, int] | None = None


def rule_of(id: StreamId) -> InternalRule | None:
    """The rule of an internal stream; None for every other one."""
    if id.name.startswith(MARK_PREFIX):
        return InternalRule.WATERMARKS
    if id.name.startswith(READER_GROUP_PREFIX):
        return InternalRule.STATE
    if id == (SYSTEM_SCOPE, REQUEST_STREAM):
        return InternalRule.REPORTS
    return None


def is_passed(watermark: Watermark, head: Mapping[int, int], ranges: Ranges) -> bool:
    """Whether the head is at the watermark or beyond it; `ranges` has the key ranges of the head's segments."""
    cut = watermark.cut
    here = {**ranges, **{s.id: (s.low, s.high) for s in cut}}
    return is_at_or_before({s.id: at for s, at in cut.items()}, head, here)


def decide_watermarks(segment: int, start: int, offsets: Sequence[int], passed: int) -> InternalDecision:
    """What to keep of a mark stream, given where its watermarks are from the offset `start` of its one `segment` on.

    So many of the first of them are passed. No reader stands before the head of the stream that the watermarks are
    about. The last watermark at or before the head tells each of them how far time had come; no reader needs those
    before that. Those behind the first one that is not passed change nothing.
    """
    keep = min(max(passed - 1, 0), max(len(offsets) - WATERMARKS_KEPT, 0))
    if keep == 0 or offsets[keep] <= start:
        return InternalDecision(f"not truncated: a reader may still need each of the {len(offsets)} watermarks")
    return InternalDecision(
        f"truncated behind {keep} of {len(offsets)} watermarks: the head of the stream has passed them",
        {segment: offsets[keep]},
    )


def decide_reports(cut: Mapping[int, int], passed_bytes: int, keep_bytes: int) -> InternalDecision:
    """Drop the reports of load up to `cut`, before which all were passed on, once those are `keep_bytes` or more."""
    if passed_bytes < max(keep_bytes, 1):
        why = f"not truncated: {amount(passed_bytes)} were passed on, up to {amount(keep_bytes)} stay"
        return InternalDecision(why)
    return InternalDecision(f"truncated behind {amount(passed_bytes)} that were passed on", dict(cut))
