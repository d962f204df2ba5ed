"""The history of one request over all topics: sent, decided, carried out, answered, in order and with times.

Two passes: over everything since a bound, for records that name the request, as those do that its workflows sent; and
over the partitions of the journal where these requests are decided, from their start or a snapshot before the first of
those records, for what counted and what workflows did. Each pass reads all its partitions side by side.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from sluice.domain.decision import Reply
from sluice.domain.workflow import WorkflowKind
from sluice.engine.fold import Outcome
from sluice.kafka import topics
from sluice.kafka.requests import Request
from sluice.lookback.as_of import fold
from sluice.lookback.decoding import REFUSAL, REQUEST_TOPICS, Decoded, aggregates_of, decode
from sluice.lookback.following import Follower, FoundEntry, Running, Wanted
from sluice.lookback.progress import Advance, Progress
from sluice.lookback.snapshots import begin
from sluice.lookback.source import KafkaRecord, Source, Span
from sluice.lookback.wording import entry_line, line, shortened

_DECIDED_IN_PLACE = frozenset(REQUEST_TOPICS) - {topics.REQUESTS_CLUSTER.name}
"""The topics whose requests are decided in the journal's partition of the same number."""

_WITHOUT_REQUESTS = frozenset((topics.SNAPSHOTS.name, topics.SNAPSHOT_CHUNKS.name))

MAX_SAYS = 2_000
"""So many characters a step says at most."""

# Ids as `sluice.engine.dependencies` makes them: the workflow's, a token of the process, a number. The longest first:
# one kind's name begins with another's.
_KINDS = "|".join(sorted((kind.value for kind in WorkflowKind), key=len, reverse=True))
_SENT = re.compile(rf"(?:{_KINDS})-(?P<request>.+)-[^-]+-[0-9]+")


class Step(msgspec.Struct, frozen=True):
    """One record of the history, or one `entry` of a record of the journal: its position there, -1 for other records.

    `since_start` and `took`, since the step before, in ms; `outcome` of an entry. `aggregates` are what it is about, as
    far as it could be decoded.
    """

    at: int
    since_start: int
    took: int
    what: str
    says: str
    request: str
    types: tuple[str, ...]
    topic: str
    partition: int
    offset: int
    by: str
    entry: int = -1
    outcome: str = ""
    aggregates: frozenset[str] = frozenset()


class Trace(msgspec.Struct, frozen=True):
    """`answer_at` is when the journal had the answer; `principal` is who called, empty if the gateway did not know."""

    request: str
    steps: list[Step]
    answer: Reply | None = None
    answer_at: int | None = None
    running: list[Running] = []
    principal: str = ""


def document(trace: Trace) -> dict[str, Any]:
    """The trace as JSON has it; times in epoch ms, spans in ms. `began` is left out while no step is known."""
    first = trace.steps[0].at if trace.steps else 0
    return {
        "request": trace.request,
        **({"principal": trace.principal} if trace.principal else {}),
        **({"began": first} if trace.steps else {}),
        "answer": {
            "status": trace.answer.status,
            **({"reason": trace.answer.reason} if trace.answer.reason else {}),
            "at": trace.answer_at,
            "after": trace.answer_at - first,
        }
        if trace.answer is not None and trace.answer_at is not None
        else None,
        "steps": [
            {
                "at": step.at,
                "sinceStart": step.since_start,
                "took": step.took,
                "what": step.what,
                "says": step.says,
                "request": step.request,
                "types": list(step.types),
                "topic": step.topic,
                "partition": step.partition,
                "offset": step.offset,
                "by": step.by,
                **({"entry": step.entry, "outcome": step.outcome} if step.outcome else {}),
            }
            for step in trace.steps
        ],
        "running": [msgspec.to_builtins(running) for running in trace.running],
    }


_Order = tuple[int, int, int, str, int, int, int]


class Found(msgspec.Struct, frozen=True):
    """A record that belongs to request `id`; `depth` 0 is the request itself."""

    decoded: Decoded
    id: str
    depth: int


def trace(source: Source, request: str, since_ms: int, progress: Progress) -> Trace:
    """Raises UnreachableError, and LookbackError where a partition of the journal itself stops."""
    spans = source.spans(searched_topics(source), since_ms=since_ms)
    with progress("searching", sum(s.length for s in spans)) as advance:
        found = list(search(source, spans, request, advance))
    if not found:
        return Trace(request, [])
    return traced(request, found, _followed(source, request, found, progress), since_ms)


def traced(request: str, found: Iterable[Found], followers: Sequence[Follower], since_ms: int) -> Trace:
    """The history that the records and the entries make together; entries before `since_ms` are left out."""
    entries = [entry for follower in followers for entry in follower.found]
    outside = [one for one in found if one.decoded.record.topic != topics.JOURNAL.name]
    shown = [entry for entry in entries if entry.message.at >= since_ms]
    steps = _ordered(request, outside, shown)
    reply, answer_at = _answer(entries, request)
    principal = next((p for p in _principals(request, outside, entries) if p), "")
    still_running = [running for follower in followers for running in follower.running()]
    return Trace(request, list(_timed(steps)), reply, answer_at, still_running, principal)


def searched_topics(source: Source) -> list[str]:
    """The topics there are in which records name requests."""
    there = {topic.name for topic in source.topics()} - _WITHOUT_REQUESTS
    return [topic.name for topic in topics.TOPICS if topic.name in there]


def depth_below(id: str, request: str) -> int | None:
    """How many workflows lie between the two: 0 for the request itself, None if it has nothing to do with the other.

    The id of a request that a workflow sends to another key names the workflow, and so the request that began it.
    """
    depth = 0
    while id != request:
        sent = _SENT.fullmatch(id)
        if sent is None:
            return None
        depth, id = depth + 1, sent["request"]
    return depth


def search(source: Source, spans: list[Span], request: str, advance: Advance = lambda _steps: None) -> Iterator[Found]:
    """The records that name the request: having its id somewhere is not enough.

    Decoding is slow and looking for bytes is not.
    """
    needle = msgspec.json.encode(request)[1:-1]
    for item in source.read(spans):
        if isinstance(item, Span):
            continue
        advance(1)
        if needle in (item.value or b"") or depth_below(item.header("ce_id"), request) is not None:
            decoded = decode(item)
            depths = [(depth, id) for id in decoded.requests if (depth := depth_below(id, request)) is not None]
            if depths:
                depth, id = min(depths)
                yield Found(decoded, id, depth)


def wanted_of(request: str, found: Iterable[Found]) -> dict[int, Wanted]:
    """What to look for in each partition of the journal in which a request is decided, or which names one."""
    records = [(one.decoded.record, one.id) for one in found]
    requests = {(r.topic, r.partition, r.offset): id for r, id in records if r.topic in _DECIDED_IN_PLACE}
    journal = {record.partition for record, _ in records if record.topic == topics.JOURNAL.name}
    partitions = sorted(journal | {partition for _, partition, _ in requests})
    return dict.fromkeys(partitions, Wanted(requests, lambda named: depth_below(named, request) is not None))


def _followed(source: Source, request: str, found: list[Found], progress: Progress) -> list[Follower]:
    """Fold the partitions where the requests that were found are decided, or where the journal names them."""
    followers = {partition: Follower(wanted) for partition, wanted in wanted_of(request, found).items()}
    spans = source.spans([topics.JOURNAL.name], partitions=followers) if followers else []
    views = {partition: follower.view for partition, follower in followers.items()}
    left, _ = begin(source, spans, views, min(one.decoded.record.at for one in found))
    with progress("folding", sum(s.length for s in left)) as advance:
        fold(source, left, followers, advance)
    return list(followers.values())


def _answer(entries: Iterable[FoundEntry], request: str) -> tuple[Reply | None, int | None]:
    """The answer that counted, and when the journal had it."""
    for one in entries:
        if one.entry.request == request and one.entry.reply is not None and one.outcome is Outcome.COUNTED:
            return one.entry.reply, one.message.at
    return None, None


def _principals(request: str, found: Iterable[Found], entries: Iterable[FoundEntry]) -> Iterator[str]:
    """Who called, as the request says, which Kafka may not have any more, and the entry that decides it."""
    for one in found:
        if one.id == request and isinstance(one.decoded.content, Request):
            yield one.decoded.content.principal
    for entry in entries:
        if entry.request == request:
            yield entry.entry.principal


def _ordered(request: str, found: Iterable[Found], entries: Iterable[FoundEntry]) -> list[Step]:
    """By time; within a millisecond as one follows from the other."""
    steps: list[tuple[_Order, Step]] = []
    for one in found:
        record = one.decoded.record
        stage = 0 if isinstance(one.decoded.content, Request) else 2
        order = (record.at, one.depth, stage, record.topic, record.partition, record.offset, -1)
        steps.append((order, _record_step(one)))
    for entry in entries:
        message, depth = entry.message, depth_below(entry.request, request) or 0
        is_reply = _is_reply(entry)
        position = (message.topic, message.partition, message.offset, entry.index)
        steps.append(((message.at, 0 if is_reply else depth, 3 if is_reply else 1, *position), _entry_step(entry)))
    return [step for _, step in sorted(steps, key=lambda item: item[0])]


def _timed(steps: list[Step]) -> Iterator[Step]:
    first = previous = steps[0].at if steps else 0
    for step in steps:
        yield msgspec.structs.replace(step, since_start=step.at - first, took=step.at - previous)
        previous = step.at


def _record_step(one: Found) -> Step:
    decoded = one.decoded
    step = _step(decoded.record, _what(one), line(decoded), one.id, decoded.types, decoded.by)
    return msgspec.structs.replace(step, aggregates=aggregates_of(decoded))


def _entry_step(found: FoundEntry) -> Step:
    types = tuple(type(event).__name__ for event in found.entry.events) or (REFUSAL,)
    says = entry_line(found.entry, found.events)
    step = _step(found.message, _what_of_entry(found), says, found.request, types, found.by)
    aggregates = frozenset(event.aggregate for event in found.entry.events)
    return msgspec.structs.replace(step, entry=found.index, outcome=found.outcome.value, aggregates=aggregates)


def _step(record: KafkaRecord, what: str, says: str, request: str, types: tuple[str, ...], by: str) -> Step:
    says = shortened(says, MAX_SAYS)
    return Step(record.at, 0, 0, what, says, request, types, record.topic, record.partition, record.offset, by)


def _what(one: Found) -> str:
    if one.decoded.record.topic == topics.DEAD_LETTERS.name:
        return "dead letter"
    if isinstance(one.decoded.content, Request):
        return "requested" if one.depth == 0 else "follow-up"
    return "not decoded" if one.decoded.content is None else "reported"


def _what_of_entry(found: FoundEntry) -> str:
    if found.outcome is Outcome.STALE:
        return "void: decided on an older state"
    if found.outcome is Outcome.DUPLICATE:
        return "void: decided before"
    if _is_reply(found):
        return "answered"
    return "decided" if found.is_own else "workflow"


def _is_reply(found: FoundEntry) -> bool:
    return found.is_own and found.entry.reply is not None
