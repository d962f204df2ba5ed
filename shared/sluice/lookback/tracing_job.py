"""The job that finds the history of one request, searching from now backwards until it finds where it was sent.

What is searched grows with each step back, so a request of the last minute is found at once. Then the partitions in
which it was decided are folded from there on, each until nothing of it is under way any more.
"""

from collections.abc import Iterator, Sequence
from heapq import nsmallest
from itertools import chain
from typing import Any

import msgspec

from sluice.kafka import topics
from sluice.kafka.requests import Request
from sluice.lookback.as_of import fold
from sluice.lookback.errors import TimeIsOverError
from sluice.lookback.following import Follower, Wanted
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.source import Span
from sluice.lookback.tracing import Found, Step, document, search, searched_topics, traced, wanted_of

MAX_RECORDS = 500_000
"""So many records are searched for the request's id at most: these are bytes, and few of them are decoded."""

MAX_STEPS = 10_000
"""So many records that name the request are taken at most, its own and the earliest of what followed from it, and so
many entries of each partition."""

MAX_BYTES = 8 * 1024 * 1024
"""How much the steps of one answer take, unless one alone takes more."""

FIRST_MS = 60_000
GROWTH = 4


class TraceQuestion(msgspec.Struct, frozen=True):
    """The request, and what to search: records appended in [since_ms, before_ms), epoch ms; `before_ms` 0 is now."""

    request: str
    since_ms: int
    before_ms: int = 0


class TraceFound(msgspec.Struct, frozen=True):
    """The history as `tracing.document` has it, and what each step and each running workflow is about.

    `steps` and `running` have aggregates by their number. `searched_to` is the moment back to which all is searched,
    epoch ms; it is `complete` from where the request was sent, or from `since_ms` on. Of what is too much the first
    steps are there, and it is not.
    """

    document: dict[str, Any]
    steps: list[list[str]]
    running: list[str]
    searched_to: int
    complete: bool


def _trace(context: JobContext, submitted: TraceQuestion) -> TraceFound:
    found, searched_to, complete = _search_back(context, submitted)
    followers: list[Follower] = []
    try:
        for partition, wanted in wanted_of(submitted.request, found).items():
            followers.append(_begin(context, partition, wanted, found))
            _follow(context, partition, followers[-1], found)
    except TimeIsOverError:
        complete = False
    trace = traced(submitted.request, found, followers, submitted.since_ms)
    steps = _first_of(trace.steps)
    taken = [len(found), *(len(one.found) for one in followers)]
    is_all = len(steps) == len(trace.steps) and max(taken) < MAX_STEPS
    return TraceFound(
        document(msgspec.structs.replace(trace, steps=steps)),
        [sorted(step.aggregates) for step in steps],
        [running.aggregate for running in trace.running],
        searched_to,
        complete and is_all,
    )


def _first_of(steps: Sequence[Step]) -> list[Step]:
    """As many of them as one answer holds."""
    size, first = 0, list[Step]()
    for step in steps:
        size += len(step.says) + sum(map(len, step.types)) + sum(map(len, step.aggregates))
        if first and size > MAX_BYTES:
            break
        first.append(step)
    return first


def _search_back(context: JobContext, submitted: TraceQuestion) -> tuple[list[Found], int, bool]:
    """What names the request, the moment back to which that is all, and whether more of it can be before that."""
    found: list[Found] = []
    searched_to = submitted.before_ms or context.now_ms + 1
    try:
        for since_ms, spans in _windows(context, submitted):
            named = search(context.source, spans, submitted.request)
            found = nsmallest(MAX_STEPS, chain(named, found), key=lambda one: (one.depth, one.decoded.record.at))
            searched_to = since_ms
            if any(one.depth == 0 and isinstance(one.decoded.content, Request) for one in found):
                return found, searched_to, True
    except TimeIsOverError:
        return found, searched_to, False
    return found, searched_to, searched_to <= submitted.since_ms


def _windows(context: JobContext, submitted: TraceQuestion) -> Iterator[tuple[int, list[Span]]]:
    """What to search, the latest first, each with the moment at which it begins."""
    names = searched_topics(context.source)
    end_ms, width_ms, left = submitted.before_ms or None, FIRST_MS, MAX_RECORDS
    while left > 0:
        begin_ms = max(submitted.since_ms, (end_ms or context.now_ms) - width_ms)
        spans = context.source.spans(names, since_ms=begin_ms, until_ms=end_ms)
        records = sum(span.length for span in spans)
        if records > left and left < MAX_RECORDS:
            width_ms //= GROWTH
            if width_ms < FIRST_MS:
                return
            continue
        yield begin_ms, spans
        if begin_ms <= submitted.since_ms:
            return
        left -= records
        end_ms, width_ms = begin_ms, width_ms * GROWTH


def _begin(context: JobContext, partition: int, wanted: Wanted, found: list[Found]) -> Follower:
    """At the first record that names the request: nothing of it is before."""
    first_ms = min(one.decoded.record.at for one in found)
    follower = Follower(wanted, context.view_before(partition, first_ms - 1))
    follower.undecided = {key for key in follower.undecided if key[1] == partition}
    return follower


def _follow(context: JobContext, partition: int, follower: Follower, found: list[Found]) -> None:
    journal = [one.decoded.record for one in found if one.decoded.record.topic == topics.JOURNAL.name]
    last = max((record.offset for record in journal if record.partition == partition), default=-1)
    view, span = follower.view, context.journal([partition])[partition]

    def is_over() -> bool:
        is_done = view.next_offset > last and not follower.undecided and not follower.is_following
        return is_done or len(follower.found) >= MAX_STEPS

    fold(
        context.source,
        [Span(span.topic, partition, view.next_offset, span.end)],
        {partition: follower},
        is_over=is_over,
    )


TRACE = Job("trace-request", TraceQuestion, TraceFound, _trace)
