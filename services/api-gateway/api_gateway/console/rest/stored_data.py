"""What streams and tables hold: events of a stream, entries of a key-value table. Others wrote it; it is only shown."""

import codecs
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import Depends, Query, Response
from pydantic import Field

from api_gateway.console.paging import After, position_in, token_of
from api_gateway.console.rates import Rates
from api_gateway.console.rest.base import (
    INT64_MAX,
    Cut,
    Model,
    Page,
    ScopeName,
    StreamName,
    TableName,
    refusals,
    router,
)
from api_gateway.console.stored_data import (
    MAX_SEGMENTS,
    MAX_VALUE_BYTES,
    Position,
    SegmentEvents,
    StoredData,
    WantedSegment,
)
from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.edge.rest.parts import ServedReads, served
from sluice.domain.errors import NotFoundError
from sluice.domain.ids import StreamId, TableId
from sluice.domain.segment import Segment, kvt_segment_name, segment_name
from sluice.domain.status import Status
from sluice.domain.stream.state import Stream
from sluice.domain.table.state import Table, current_segments
from sluice.pravega.event_routing import key_position, segment_at
from sluice.pravega.table_routing import entry_position
from sluice.pravega.wire.fields import TableEntry
from sluice.validation import form

routes = router("data")

MAX_ITEMS = 100
MAX_TEXT = 1_000

_PART = "[0-9]{1,18}=(-1|[0-9]{1,18})"

_POSITION = re.compile("([0-9]{1,9})[.]((?:[0-9a-f]{2})*)")

Count = Annotated[int, Query(ge=1, le=MAX_ITEMS, description="How many the answer should have.")]


class Data(Model):
    """Bytes that a client wrote: text of others, never to be taken for markup or commands."""

    value: str = Field(description=f"As text if it is UTF-8, else in base64; its first {MAX_VALUE_BYTES} bytes.")
    encoding: Literal["text", "base64"]
    size: int = Field(description="How many bytes there are of it.")


class EventItem(Model):
    """An event of a segment."""

    segment: int = Field(description="Id of its segment.")
    offset: int = Field(description="Where it begins, its header of 8 bytes included.")
    next: int = Field(description="Where the segment's next event begins.")
    data: Data


class EventSegment(Model):
    """A segment in which events were looked for."""

    id: int
    start_offset: int | None = Field(default=None, description="What lies before it was truncated.")
    length: int | None = Field(default=None, description="Where the segment ends.")
    problem: str | None = Field(default=None, description="Why it has no events here, or no more.")


class EventList(Model):
    """Events by segments, each segment's in their order; between segments there is no order."""

    items: list[EventItem]
    segments: list[EventSegment] = Field(description=f"Where they were looked for: {MAX_SEGMENTS} segments at most.")
    more_segments: int = Field(description="How many more segments there are; ask for one with `segment` or `key`.")
    next: Cut = Field(description="Where to go on, as `from`: what that names and was not read stays as it is.")


class EntryItem(Model):
    """An entry of a key-value table."""

    partition: int = Field(description="Id of its partition.")
    version: int
    key: Data
    secondary: Data | None = Field(default=None, description="Left out where the table has no secondary keys.")
    value: Data


class PartitionProblem(Model):
    """Why a partition was left out."""

    partition: int
    problem: str


class EntryList(Page[EntryItem]):
    """A page of entries: one partition after the other, in each by their keys."""

    problems: list[PartitionProblem] = Field(description="Of partitions that were left out.")


async def _shown(stored: Annotated[StoredData, served(StoredData)]) -> StoredData:
    if not stored.is_shown:
        raise RefusedError(403, "what streams and tables hold is not shown here (SLUICE_SHOW_DATA)")
    return stored


ShownData = Annotated[StoredData, Depends(_shown)]


@routes.get(
    "/scopes/{scope}/streams/{stream}/events",
    operation_id="readEvents",
    response_model=EventList,
    responses=refusals(404),
)
async def read_events(
    reads: ServedReads,
    stored: ShownData,
    rates: Annotated[Rates, served(Rates)],
    scope: ScopeName,
    stream: StreamName,
    segment: Annotated[int | None, Query(ge=0, le=INT64_MAX, description="Only this segment, of any epoch.")] = None,
    key: Annotated[
        str | None,
        Query(max_length=MAX_TEXT, description="Only the segment that events of this routing key go to."),
    ] = None,
    from_: Annotated[
        str,
        Query(
            alias="from",
            max_length=MAX_TEXT,
            pattern=form(f"^({_PART}(,{_PART})*)?$", "SEGMENT=OFFSET, with commas between"),
            description="From this cut on, SEGMENT=OFFSET with commas between, -1 for a segment not yet reached; left "
            "out: the last events.",
        ),
    ] = "",
    limit: Count = 20,
) -> Response:
    """Read the last events of a stream, or the events from a cut on: of each segment its share of `limit`.

    An event does not say what its routing key was.
    """
    if segment is not None and key is not None:
        raise RefusedError(400, "segment and key exclude each other")
    found = await reads.stream(StreamId(scope, stream))
    measured = [sample.cut for sample in rates.kept.since(found.id, 0)]
    cut = dict(map(_offset_of, from_.split(","))) if from_ else None
    wanted = _wanted(found, segment, key, cut, measured)
    each = max(1, limit // max(1, min(len(wanted), MAX_SEGMENTS)))
    read = await stored.events(wanted[:MAX_SEGMENTS], each)
    return as_json(
        EventList(
            items=[item for one in read for item in _events(one)],
            segments=[
                EventSegment(id=one.id, start_offset=one.start_offset, length=one.length, problem=one.problem or None)
                for one in read
            ],
            more_segments=max(0, len(wanted) - MAX_SEGMENTS),
            next={f"{id}": at for id, at in {**(cut or {}), **_ends(read)}.items()},
        )
    )


@routes.get(
    "/scopes/{scope}/tables/{table}/entries",
    operation_id="readEntries",
    response_model=EntryList,
    responses=refusals(404, 409),
)
async def read_entries(
    reads: ServedReads,
    stored: ShownData,
    scope: ScopeName,
    table: TableName,
    key: Annotated[str | None, Query(max_length=MAX_TEXT, description="Only the entry of this key.")] = None,
    secondary: Annotated[
        str, Query(max_length=MAX_TEXT, description="Its secondary key, where the table has one.")
    ] = "",
    limit: Count = 20,
    after: After = "",
) -> Response:
    """Read entries of a key-value table, or the one of a key."""
    found = await reads.table_or_none(TableId(scope, table))
    if found is None:
        raise RefusedError(404, f"key-value table {scope}/{table} does not exist", Status.TABLE_NOT_FOUND)
    partitions = current_segments(found)
    names = [kvt_segment_name(scope, table, one.id) for one in partitions]
    if key is not None:
        whole = _whole_key(found, key, secondary)
        ranges = [(one.high, f"{place}") for place, one in enumerate(partitions)]
        place = int(segment_at(entry_position(key.encode()), ranges))
        entry = await stored.entry(names[place], whole)
        items = [_entry(found, partitions[place].id, entry)] if entry is not None else []
        return as_json(EntryList(items=items, problems=[]))
    read = await stored.entries(names, _position_in(after), limit)
    following = token_of(f"{read.next.partition}.{read.next.key.hex()}") if read.next is not None else None
    items = [_entry(found, partitions[place].id, entry) for place, entry in read.entries]
    wrong = [PartitionProblem(partition=partitions[place].id, problem=why) for place, why in read.problems.items()]
    return as_json(EntryList(items=items, next=following, problems=wrong))


def _wanted(
    stream: Stream,
    segment: int | None,
    key: str | None,
    cut: Mapping[int, int] | None,
    measured: Sequence[Mapping[int, int]],
) -> list[WantedSegment]:
    """The segments to read, by key range; `measured` are cuts. Raises BadRequestError, NotFoundError."""
    offsets = {id: at for id, at in cut.items() if at >= 0} if cut is not None else None
    if segment is not None:
        segments = [_segment(stream, segment)]
    elif offsets is not None:
        segments = sorted((_segment(stream, id) for id in offsets), key=lambda one: (one.low, one.id))
    else:
        segments = stream.active_segments()
    if key is not None:
        segments = [one for one in segments if _is_for(one, key)]
    if offsets is not None and any(one.id not in offsets for one in segments):
        raise BadRequestError(f"the cut names no offset of segment {segment}")
    at, cuts = offsets or {}, [*measured, stream.cut]
    return [
        WantedSegment(
            one.id,
            segment_name(*stream.id, one.id),
            at.get(one.id),
            tuple(known[one.id] for known in cuts if one.id in known),
        )
        for one in segments
    ]


def _offset_of(part: str) -> tuple[int, int]:
    segment, _, offset = part.partition("=")
    return int(segment), int(offset)


def _segment(stream: Stream, id: int) -> Segment:
    found = stream.history.find(id)
    if found is None:
        raise NotFoundError(f"{stream.id} has no segment {id}")
    return found


def _is_for(segment: Segment, key: str) -> bool:
    """Whether events of the key go there while it is written to: `segment_at` gives it then."""
    at = key_position(key)
    return segment.high >= at and (segment.low < at or segment.low == 0)


def _ends(read: list[SegmentEvents]) -> dict[int, int]:
    return {one.id: one.next for one in read if one.next is not None}


def _events(found: SegmentEvents) -> list[EventItem]:
    return [
        EventItem(segment=found.id, offset=one.start, next=one.end, data=_data(one.data, one.size))
        for one in found.events
    ]


def _data(data: bytes, size: int) -> Data:
    """What is kept of so many bytes; a letter that was cut in two is left out."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data, final=len(data) == size)
    except UnicodeDecodeError:
        return Data(value=b64encode(data).decode(), encoding="base64", size=size)
    return Data(value=text, encoding="text", size=size)


def _whole_key(table: Table, primary: str, secondary: str) -> bytes:
    """The key as a segment store has it. Raises BadRequestError."""
    config = table.config
    for what, given, length in (
        ("key", primary, config.primary_key_length),
        ("secondary key", secondary, config.secondary_key_length),
    ):
        if len(given.encode()) != length:
            raise BadRequestError(f"the {what} has {len(given.encode())} bytes; in this table it has {length}")
    return (primary + secondary).encode()


def _entry(table: Table, partition: int, entry: TableEntry) -> EntryItem:
    key, value, length = entry.key.key, entry.value, table.config.primary_key_length
    return EntryItem(
        partition=partition,
        version=entry.key.version,
        key=_data(key[:length], len(key[:length])),
        secondary=_data(key[length:], len(key[length:])) if table.config.secondary_key_length else None,
        value=_data(value[:MAX_VALUE_BYTES], len(value)),
    )


def _position_in(after: str) -> Position:
    """Raises BadRequestError."""
    found = _POSITION.fullmatch(position_in(after) or "0.")
    if found is None:
        raise BadRequestError("after: not a token of a page of this list")
    return Position(int(found[1]), bytes.fromhex(found[2]))
