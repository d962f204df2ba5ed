"""When the bytes of a stream had to go by its policy, and when they went: both from what Kafka holds.

What had to go is counted from the reports alone, by the plain meaning of a policy; the rules that decide take no part.
"""

from collections.abc import Callable, Iterable

import msgspec

from sluice.domain.stream import events as ev
from sluice.domain.stream.retention import RetentionReport
from sluice.kafka.topics import RETENTION
from support.kafka import events, fold, read

Dues = dict[int, int]
"""From when on (epoch ms) so many bytes at the beginning of a stream were not to be there any more."""


def beyond_size(reports: Iterable[RetentionReport], minimum: int) -> Dues:
    """Each sampled size is due with the first report by which the minimum was written behind it."""
    all_reports = list(reports)
    sizes = [report.sample.size for report in all_reports if report.sample is not None and report.sample.size > 0]
    return _first(
        (size, r.at) for size in sizes for r in all_reports if r.sample is not None and r.sample.size - size >= minimum
    )


def beyond_time(reports: Iterable[RetentionReport], minimum_ms: int) -> Dues:
    """Each sampled size is due when the first sample that found it is as old as the minimum."""
    return _first((r.sample.size, r.at + minimum_ms) for r in reports if r.sample is not None and r.sample.size > 0)


def consumed(reports: Iterable[RetentionReport]) -> Dues:
    """What all subscribers have passed is due with the report that says so."""
    return _first((r.bound.size, r.at) for r in reports if r.bound is not None and r.bound.size > 0)


def _first(found: Iterable[tuple[int, int]]) -> Dues:
    dues: Dues = {}
    for size, at in found:
        dues[size] = min(at, dues.get(size, at))
    return dues


def overdue_ms(bootstrap: str, scope: str, stream: str, rule: Callable[[list[RetentionReport]], Dues]) -> list[int]:
    """How long after it was due each size was gone, of a stream with one segment; empty while one of them is there."""
    messages = [msgspec.json.decode(m.value() or b"", type=RetentionReport) for m in read(bootstrap, RETENTION.name)]
    dues = rule(sorted((r for r in messages if (r.scope, r.stream) == (scope, stream)), key=lambda r: r.at))
    cuts = events(
        fold(bootstrap),
        lambda e: isinstance(e, ev.StreamTruncationStarted) and (e.scope, e.stream) == (scope, stream),
    )
    went = {size: [cut.at for cut in cuts if max(cut.cut.values()) >= size] for size in dues}
    return [min(went[size]) - at for size, at in dues.items()] if all(went.values()) else []
