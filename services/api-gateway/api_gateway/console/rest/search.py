"""Search over everything that has a name or an id: the best hits, each with its address on the page.

Names that begin with the text come before those that only contain it. What the caller may not READ is left out. Works
in slices, and stops where it has examined enough.
"""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Literal
from urllib.parse import quote

import msgspec
from fastapi import Query, Request, Response
from pydantic import Field

from api_gateway.console.lookback import while_caller_waits
from api_gateway.console.rest.base import Model, refusals, router
from api_gateway.edge.listing import may_read
from api_gateway.edge.reads import Names, Reads, streams_after
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.capacity import SCAN
from api_gateway.edge.rest.parts import ServedReads
from api_gateway.edge.security.rest_resources import CLUSTER, DEAD_LETTERS
from api_gateway.edge.slices import Slices
from sluice.domain.ids import ResourceKind, StreamId
from sluice.domain.segment import parse_segment_name
from sluice.domain.stream.state import Stream
from sluice.domain.transaction.index import StreamTransactions
from sluice.engine.fold import PartitionView
from sluice.security.resources import mapped_resource, reader_group_resource, scope_resource, table_resource

routes = router("streams")

MAX_HITS = 50
MAX_NAMES = 200_000
"""How many names are looked at."""
MAX_STREAMS = 5_000
"""In how many streams a segment without the name of its stream is looked for: their states have to be decoded."""

HitType = Literal[
    "scope", "stream", "reader-group", "table", "transaction", "request", "segment", "member", "dead-letter"
]

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LETTER = re.compile(r"\d{1,9}/\d{1,18}")
_REQUEST = re.compile(r"[0-9a-f]{10}-[0-9a-f]+(\..+)?")
_SEGMENT = re.compile(r"(.+/)?\d+\.#epoch\.\d+")


class Hit(Model):
    """Something that was found."""

    type: HitType
    name: str = Field(examples=["demo/orders"])
    address: str = Field(description="Where the page shows it.", examples=["#/streams/demo/orders"])
    detail: str | None = None


class Hits(Model):
    """What was found, the best first; 50 at most."""

    items: list[Hit]


class _Kind(msgspec.Struct, frozen=True):
    """A kind of resource in a scope: which names, whether they may be read, where the page shows them."""

    type: HitType
    names: Callable[[str], Names]
    resource: Callable[[str, str], str]
    page: str


def _of(kind: ResourceKind) -> Callable[[str], Names]:
    return lambda behind: lambda members: members.after(kind, behind)


_KINDS = (
    _Kind("stream", lambda behind: streams_after(behind, internal=False), mapped_resource, "streams"),
    _Kind("reader-group", _of(ResourceKind.READER_GROUP), reader_group_resource, "groups"),
    _Kind("table", _of(ResourceKind.TABLE), table_resource, "tables"),
)


def rank(text: str, *names: str) -> int | None:
    """0 if one of the names begins with the text, 1 if one contains it, None if none does; all in small letters."""
    if any(name.startswith(text) for name in names):
        return 0
    return 1 if any(text in name for name in names) else None


@routes.get("/search", operation_id="search", dependencies=[SCAN], response_model=Hits, responses=refusals())
async def search(
    request: Request,
    reads: ServedReads,
    q: Annotated[str, Query(min_length=1, max_length=300, description="Part of a name, or an id.")],
) -> Response:
    """Find scopes, streams, groups, tables and members by name; transactions, requests, segments and letters by id."""
    return as_json(await while_caller_waits(request, _found(reads, q)))


async def _found(reads: Reads, q: str) -> Hits:
    text = q.strip().casefold()
    hits: tuple[list[Hit], list[Hit]] = ([hit async for hit in _by_id(reads, q.strip())], [])
    if text:
        async for place, hit in _by_name(reads, text):
            if len(hits[place]) < MAX_HITS:
                hits[place].append(hit)
            if len(hits[0]) >= MAX_HITS:
                break
    return Hits(items=[*hits[0], *hits[1]][:MAX_HITS])


async def _by_name(reads: Reads, text: str) -> AsyncIterator[tuple[int, Hit]]:
    """What has a name with the text in it, and its rank."""
    scopes = await reads.scope_names()
    for scope in scopes:
        if (place := rank(text, scope.casefold())) is not None and may_read(scope_resource(scope)):
            yield place, Hit(type="scope", name=scope, address=_address("scopes", scope))
    for place, hit in _members(reads, text):
        yield place, hit
    examined = 0
    for scope in scopes:
        for kind in _KINDS:
            async for name, _view in reads.names_of(scope, kind.names):
                examined += 1
                if examined > MAX_NAMES:
                    return
                full = f"{scope}/{name}"
                place = rank(text, name.casefold(), full.casefold())
                if place is not None and may_read(kind.resource(scope, name)):
                    yield place, Hit(type=kind.type, name=full, address=_address(kind.page, scope, name))


def _members(reads: Reads, text: str) -> Iterator[tuple[int, Hit]]:
    if not may_read(CLUSTER):
        return
    for member in reads.cluster().members.values():
        name = f"{member.service}/{member.instance}"
        if (place := rank(text, name.casefold(), member.instance.casefold())) is not None:
            yield place, Hit(type="member", name=name, address=_address("cluster", member=name))


async def _by_id(reads: Reads, text: str) -> AsyncIterator[Hit]:
    """What the text is the whole id of."""
    found = 0
    if _LETTER.fullmatch(text) and may_read(DEAD_LETTERS):
        yield Hit(type="dead-letter", name=text, address=_address("dead-letters", letter=text))
    if _REQUEST.fullmatch(text):
        yield Hit(
            type="request", name=text, address=_address("requests", text), detail="whether it was is not known here"
        )
    if _UUID.fullmatch(text):
        async for hit in _transactions(reads, text):
            yield hit
    if _SEGMENT.fullmatch(text):
        async for hit in _segments(reads, text):
            if (found := found + 1) > MAX_HITS:
                return
            yield hit


async def _transactions(reads: Reads, uuid: str) -> AsyncIterator[Hit]:
    """The ids of transactions are looked up in the index of each stream that has any."""
    slices = Slices()
    await reads.scope_names()
    for view in reads.views():
        for name in [name for name, index in view.projections() if isinstance(index, StreamTransactions)]:
            index, id = view.projection(name), StreamId.of(name)
            if (
                isinstance(index, StreamTransactions)
                and (state := _state_in(index, uuid))
                and may_read(mapped_resource(*id))
            ):
                address = _address("streams", *id, tab="transactions", transaction=uuid)
                yield Hit(type="transaction", name=uuid, address=address, detail=f"{state}, of {id}")
            if slices.is_over():
                await slices.pause()


def _state_in(index: StreamTransactions, uuid: str) -> str:
    if index.find_ended(uuid) is not None:
        return "ended"
    states = (
        (index.open, "open"),
        (index.committing, "waiting for its commit"),
        (index.aborting, "being aborted"),
    )
    return next((state for ids, state in states if uuid in ids), "")


async def _segments(reads: Reads, text: str) -> AsyncIterator[Hit]:
    """A segment by its name on the data plane, or by its part behind that of the stream."""
    *stream, name = text.rsplit("/", 1)
    try:
        _, _, segment, _ = parse_segment_name(f"a/b/{name}")
    except ValueError:
        return
    async for id, view in _streams(reads, *stream):
        state = view.peek(id.aggregate) if may_read(mapped_resource(*id)) else None
        if isinstance(state, Stream) and state.history.find(segment) is not None:
            address = _address("streams", *id, tab="segments", segment=str(segment))
            yield Hit(type="segment", name=f"{id}/{name}", address=address)


async def _streams(reads: Reads, only: str = "") -> AsyncIterator[tuple[StreamId, PartitionView]]:
    """The stream of that name, whether it is there or not; without one the first streams of all."""
    scopes, examined = await reads.scope_names(), 0
    if only:
        id = StreamId.of(only)
        _, view = reads.known(id.aggregate)
        yield id, view
        return
    for scope in scopes:
        async for name, view in reads.names_of(scope, _KINDS[0].names):
            examined += 1
            if examined > MAX_STREAMS:
                return
            yield StreamId(scope, name), view


def _address(*parts: str, **query: str) -> str:
    path = "/".join(quote(part, safe="") for part in parts)
    more = "&".join(f"{key}={quote(value, safe='')}" for key, value in query.items())
    return f"#/{path}" + (f"?{more}" if more else "")
