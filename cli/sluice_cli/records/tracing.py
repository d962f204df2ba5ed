"""The life of one request over all topics: asked, decided, carried out, answered, in order and with times.

Three passes: over everything since a bound, for records that name the request in their headers or bodies; over the
time between its first and its last record, for commands that its workflows sent under ids of their own; and over the
partitions of the journal that hold what was found, from their start, for what counted and what workflows did. Each
pass reads all its partitions side by side.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from sluice.domain.commands import PassedOn
from sluice.domain.decision import Reply
from sluice.domain.events import NameReserved, TransactionOpened, TransactionReady
from sluice.domain.transaction.ids import transaction_id
from sluice.journal.partition_view import Outcome
from sluice.journal.record import Record
from sluice.messaging import topics
from sluice.messaging.requests import Request
from sluice_cli.output import Advance, Progress
from sluice_cli.records.decoding import REQUEST_TOPICS, Decoded, decode
from sluice_cli.records.follow_ups import has_follow_ups, is_follow_up
from sluice_cli.records.following import Follower, Place, Running, Wanted, is_reply, own_events
from sluice_cli.records.past import fold
from sluice_cli.records.source import KafkaRecord, Source, Span
from sluice_cli.records.wording import about, answer, line, said

MOST_FOLLOW_UPS = 1000
MOST_BESIDE = 200_000
"""Records in the time of a request among which follow-ups are looked for; more would not fit into memory."""

AFTER_MS = 1000
"""How long after its answer a request's last commands may still be sent."""


class Step(msgspec.Struct, frozen=True):
    """One record of the life. `since_start` and `took`, since the step before, in ms; `outcome` of a journal record."""

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
    outcome: str = ""


class Trace(msgspec.Struct, frozen=True):
    """`answer_at` is when the journal had the answer; `notes` say what could not be looked at."""

    request: str
    steps: list[Step]
    answer: Reply | None = None
    answer_at: int | None = None
    running: list[Running] = []
    notes: list[str] = []


class _Found(msgspec.Struct, frozen=True):
    """A record that belongs to request `id`; `depth` 0 is the request itself."""

    decoded: Decoded
    id: str
    depth: int
    what: str = ""


def trace(source: Source, request: str, since_ms: int, progress: Progress) -> Trace:
    """Raises UnreachableError, and CommandError where a partition of the journal itself stops."""
    there = {topic.name for topic in source.topics()}
    searched = [topic.name for topic in topics.TOPICS if topic.name in there]
    spans = source.spans(searched, since_ms=since_ms)
    with progress("searching", sum(s.length for s in spans)) as advance:
        found = [_Found(d, request, 0) for d in _search(source, spans, request, advance)]
    if not found:
        return Trace(request, [])
    more, notes = _follow_ups(source, request, found, progress)
    found += more
    outcomes, steps, still_running = _followed(source, found, progress)
    found += steps
    reply, answer_at = _answer(found, request, outcomes)
    return Trace(request, list(_steps(found, outcomes)), reply, answer_at, still_running, notes)


def _search(source: Source, spans: list[Span], request: str, advance: Advance) -> Iterator[Decoded]:
    """The records that name the request. Decoding is slow and looking for bytes is not."""
    opened = transaction_id(0, request)[8:]
    needles = (msgspec.json.encode(request)[1:-1], opened.encode())
    for item in source.read(spans):
        if isinstance(item, Span):
            continue
        advance(1)
        value = item.value or b""
        if any(needle in value for needle in needles) or _named_in_header(item, request):
            decoded = decode(item)
            if _belongs(decoded, request, opened):
                yield decoded


def _named_in_header(record: KafkaRecord, request: str) -> bool:
    id = record.header("ce_id")
    return _is_made_from(id, request)


def _is_made_from(id: str, request: str) -> bool:
    """Whether it is the request's, or what became of it when it was replayed as a dead letter."""
    return id.rstrip("~") == request.rstrip("~") and len(id) >= len(request)


def _belongs(decoded: Decoded, request: str, opened: str) -> bool:
    """Whether it is this request's own record: ids made from it, and the transaction it opens, belong to it, too."""
    if any(_is_made_from(id, request) for id in decoded.requests):
        return True
    if isinstance(decoded.content, Record):
        return any(
            isinstance(e, TransactionOpened | TransactionReady) and e.transaction.endswith(opened)
            for e in decoded.content.events
        )
    return decoded.content is None


def _follow_ups(
    source: Source, request: str, found: list[_Found], progress: Progress
) -> tuple[list[_Found], list[str]]:
    """What the request's workflows asked of other keys, and what came of it, level by level."""
    asking = [f for f in found if isinstance(f.decoded.content, Request) and has_follow_ups(f.decoded.content.command)]
    if not asking:
        return [], []
    since = min(f.decoded.record.at for f in found)
    answered = [f.decoded.record.at for f in found if is_reply(f.decoded, request)]
    until = max(max(answered), *(f.decoded.record.at for f in found)) + AFTER_MS if answered else None
    there = {topic.name for topic in source.topics()}
    looked_at = [n for n in (*REQUEST_TOPICS, topics.JOURNAL.name, topics.DEAD_LETTERS.name) if n in there]
    spans = source.spans(looked_at, since_ms=since, until_ms=until)
    length = sum(s.length for s in spans)
    if length > MOST_BESIDE:
        return [], [f"{length} records were appended meanwhile: follow-ups under other ids were not looked for"]
    with progress("following", length) as advance:
        beside = list(_decoded(source, spans, advance))
    return _levels(asking, beside)


def _decoded(source: Source, spans: list[Span], advance: Advance) -> Iterator[Decoded]:
    for item in source.read(spans):
        if not isinstance(item, Span):
            advance(1)
            yield decode(item)


def _levels(asking: list[_Found], beside: list[Decoded]) -> tuple[list[_Found], list[str]]:
    requests = [d for d in beside if isinstance(d.content, Request)]
    known = {f.id for f in asking}
    found: list[_Found] = []
    level = asking
    while level:
        ids: dict[str, int] = {}
        for asked in level:
            assert isinstance(asked.decoded.content, Request)
            command = asked.decoded.content.command
            for other in requests:
                assert isinstance(other.content, Request)
                if other.content.id not in known and is_follow_up(command, other.content):
                    ids[other.content.id] = asked.depth + 1
        known.update(ids)
        if len(known) > MOST_FOLLOW_UPS:
            return found, [f"only the first {len(known) - len(ids)} of its follow-ups are shown"]
        new = [_Found(d, id, ids[id]) for d in beside for id in sorted(d.requests & ids.keys())]
        found += new
        level = [f for f in new if isinstance(f.decoded.content, Request) and has_follow_ups(f.decoded.content.command)]
    return found, []


def _followed(
    source: Source, found: list[_Found], progress: Progress
) -> tuple[dict[Place, Outcome], list[_Found], list[Running]]:
    """Fold the partitions that hold something of the request."""
    journal = [f for f in found if f.decoded.record.topic == topics.JOURNAL.name]
    places: dict[Place, frozenset[str]] = {}
    for one in journal:
        place = (one.decoded.record.partition, one.decoded.record.offset)
        places[place] = places.get(place, frozenset()) | {one.id}
    commands: dict[str, tuple[Any, ...]] = {}
    for one in found:
        if isinstance(one.decoded.content, Request):
            commands[one.id] = (*commands.get(one.id, ()), one.decoded.content.command)
    depths = {one.id: one.depth for one in found}
    outcomes: dict[Place, Outcome] = {}
    steps: list[_Found] = []
    still_running: list[Running] = []
    partitions = sorted({partition for partition, _ in places})
    spans = source.spans([topics.JOURNAL.name], partitions=partitions) if partitions else []
    followers = {partition: Follower(Wanted(places, commands)) for partition in partitions}
    with progress("folding", sum(s.length for s in spans)) as advance:
        fold(source, spans, followers, advance)
    for follower in followers.values():
        outcomes.update(follower.outcomes)
        still_running += follower.running()
        steps += [_Found(decode(m), id, depths[id], "workflow") for m, id in follower.steps.values()]
    outcomes.update({(s.decoded.record.partition, s.decoded.record.offset): Outcome.COUNTED for s in steps})
    return outcomes, steps, still_running


def _answer(found: list[_Found], request: str, outcomes: dict[Place, Outcome]) -> tuple[Reply | None, int | None]:
    """The answer that counted, and when the journal had it."""
    for one in found:
        record, place = one.decoded.content, (one.decoded.record.partition, one.decoded.record.offset)
        if one.id == request and is_reply(one.decoded, request) and outcomes.get(place) is Outcome.COUNTED:
            assert isinstance(record, Record)
            reply = record.reply if record.request == request else None
            return reply or record.answers.get(request), one.decoded.record.at
    return None, None


def _steps(found: list[_Found], outcomes: dict[Place, Outcome]) -> Iterator[Step]:
    ordered = sorted(found, key=_order)
    commands: dict[str, tuple[Any, ...]] = {}
    first = previous = ordered[0].decoded.record.at
    for one in ordered:
        record, content = one.decoded.record, one.decoded.content
        outcome = outcomes.get((record.partition, record.offset)) if record.topic == topics.JOURNAL.name else None
        if isinstance(content, Request):
            commands[one.id] = (*commands.get(one.id, ()), content.command)
        yield Step(
            at=record.at,
            since_start=record.at - first,
            took=record.at - previous,
            what=_what(one, outcome),
            says=_says(one, commands.get(one.id, ())),
            request=one.id,
            types=one.decoded.types,
            topic=record.topic,
            partition=record.partition,
            offset=record.offset,
            by=one.decoded.by,
            outcome=outcome.value if outcome is not None else "",
        )
        previous = record.at


def _order(one: _Found) -> tuple[int, int, int, str, int, int]:
    """By time; within a millisecond as one follows from the other."""
    record, content = one.decoded.record, one.decoded.content
    if isinstance(content, Request):
        stage = 2 if isinstance(content.command, PassedOn) else 0
    elif isinstance(content, Record):
        reserves = any(isinstance(event, NameReserved) for event in content.events)
        stage = 1 if reserves else 5 if is_reply(one.decoded, one.id) else 3
    else:
        stage = 4
    return (record.at, 0 if stage == 5 else one.depth, stage, record.topic, record.partition, record.offset)


def _what(one: _Found, outcome: Outcome | None) -> str:
    if one.decoded.record.topic == topics.DEAD_LETTERS.name:
        return "dead letter"
    if outcome is Outcome.STALE:
        return "void: decided on an older state"
    if outcome is Outcome.ANSWERED:
        return "void: answered before"
    if isinstance(one.decoded.content, Request):
        passed_on = isinstance(one.decoded.content.command, PassedOn)
        return "passed on" if passed_on else "asked" if one.depth == 0 else "follow-up"
    if one.decoded.content is None:
        return "not decoded"
    if is_reply(one.decoded, one.id):
        return "answered"
    return one.what or "decided"


def _says(one: _Found, commands: tuple[Any, ...]) -> str:
    """What the record says of this request; many may share one record."""
    record = one.decoded.content
    if not isinstance(record, Record) or one.decoded.source is not None:
        return line(one.decoded)
    reply = record.answers.get(one.id) or (record.reply if record.request == one.id else None)
    own = own_events(record, one.id, commands)
    told = "; ".join(about(event) for event in own) if own else "" if reply else said(record)
    return "; ".join(filter(None, (told, f"-> {answer(reply)}" if reply else "")))
