"""The journal: what happened, the latest first, each event with whether it counted.

Events of what the caller may not read are left out, and those before them fill the page. Where a page ends should not
say when something happened that is left out: so a key of which nothing may be read is not even searched for, and where
events may be left out a search goes on until it has found as many as the longest page has.
"""

from typing import Annotated, Any

import msgspec
from fastapi import Query, Response
from pydantic import Field

from api_gateway.console.looking_back import From, LookBack, LookingBack, To
from api_gateway.console.paging import DEFAULT, MAX_ITEMS, After, Limit, numbers_in, token_of
from api_gateway.console.rest.base import Model, ScopeName, StreamName, refusals, router
from api_gateway.edge.rest.answers import as_document
from api_gateway.edge.security.aggregates import may_see
from sluice.lookback.filters import event_types, journal_key
from sluice.lookback.searching import JOURNAL_SEARCH, FoundEvent, FoundEvents, SearchQuestion, is_aggregate
from sluice.security.caller import CALLER

routes = router("journal")

Types = Annotated[
    list[str] | None,
    Query(
        max_length=100, description="Only events of these types: repeated, or with commas.", examples=["StreamScaled"]
    ),
]


class EventModel(Model):
    """An event of the journal."""

    partition: int
    offset: int = Field(description="Of its record in the partition.")
    entry: int = Field(description="Which of the record's entries has it; an entry counts as a whole.")
    index: int = Field(description="Which of the entry's events it is.")
    at: int = Field(description="When the broker appended its record, epoch ms.")
    key: str = Field(description="What the work on it is serialised by.", examples=["demo/greetings"])
    aggregate: str = Field(description="What it happened to.", examples=["stream:demo/greetings"])
    type: str = Field(examples=["StreamScaled"])
    void: bool = Field(description="Whether it did not count.")
    why: str | None = Field(
        default=None,
        description="Why not: stale, as another one came before it, or duplicate, as it was decided before.",
    )
    by: str = Field(description="service/instance that proposed it.")
    request: str | None = Field(default=None, description="The request that it was done for, if it names one.")
    principal: str | None = Field(default=None, description="Who called for that request, if that is known.")
    value: dict[str, Any] = Field(description="The event as it stands in the journal.")


class Journal(Model):
    """Events, the latest first."""

    items: list[EventModel]
    next: str | None = Field(default=None, description="Where to go on; left out at the end.")
    searched_to: int = Field(description="Back to this moment all that fits is here or on the pages before, epoch ms.")
    complete: bool = Field(description="Whether all of the interval is searched that can be.")
    kept_from: int | None = Field(
        default=None,
        description="Before this moment, epoch ms, not all can be searched: records are gone, no snapshot is so old. "
        "Left out if all of the interval can be.",
    )


@routes.get("/journal", operation_id="searchJournal", response_model=Journal, responses=refusals())
async def search_journal(
    look_back: LookBack,
    key: Annotated[
        str,
        Query(
            max_length=600,
            description="Only what happened to this: an aggregate, scope/name, or a scope with all that is in it. "
            "Of what the caller may not READ nothing is found.",
            examples=["stream:demo/greetings"],
        ),
    ] = "",
    types: Types = None,
    from_: From = "",
    to: To = "",
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """Search the journal, from the latest event backwards; at most 50,000 records in one call."""
    return await _answer(look_back, key, types, from_, to, limit, after)


@routes.get(
    "/scopes/{scope}/streams/{stream}/history",
    operation_id="getStreamHistory",
    response_model=Journal,
    responses=refusals(),
)
async def stream_history(
    look_back: LookBack,
    scope: ScopeName,
    stream: StreamName,
    types: Types = None,
    from_: From = "",
    to: To = "",
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """Say what happened to a stream, its transactions and commits; also to one that was deleted."""
    return await _answer(look_back, f"{scope}/{stream}", types, from_, to, limit, after)


async def _answer(
    look_back: LookingBack, key: str, types: list[str] | None, from_: str, to: str, limit: int, after: str
) -> Response:
    position = numbers_in(after, 5)
    key, names = journal_key(key), event_types(types or ())
    before = (position[0], position[1], position[2], position[3], position[4]) if position is not None else None
    readable = [may_see(aggregate) for aggregate in _named(key)]
    shows_all = CALLER.get() is None or (all(readable) and (is_aggregate(key) or "/" in key))
    at_most = limit if shows_all else MAX_ITEMS
    search = SearchQuestion(key, names, look_back.time(from_), look_back.time(to), at_most, before)
    if key and not any(readable):
        return as_document(_document(FoundEvents([], search.from_ms, complete=True), limit))
    return as_document(_document(await look_back(JOURNAL_SEARCH, search), limit))


def _named(key: str) -> tuple[str, ...]:
    """The aggregates that a key names, be they there or not; in a scope there may be more."""
    if is_aggregate(key):
        return (key,)
    kinds = ("stream", "group", "table") if "/" in key else ("scope",)
    return tuple(f"{kind}:{key}" for kind in kinds)


def _document(found: FoundEvents, limit: int) -> dict[str, Any]:
    visible = [one for one in found.items if may_see(one.aggregate)]
    if len(visible) > limit:
        last = visible[limit - 1].order
        found = msgspec.structs.replace(found, searched_to=last[0], complete=False, next=last)
    following = token_of(".".join(map(str, found.next))) if found.next is not None else None
    return {
        "items": [_item(one) for one in visible[:limit]],
        **({"next": following} if following is not None else {}),
        "searchedTo": found.searched_to,
        "complete": found.complete,
        **({"keptFrom": found.kept_from} if found.kept_from is not None else {}),
    }


def _item(one: FoundEvent) -> dict[str, Any]:
    at, partition, offset, entry, index = one.order
    return {
        "partition": partition,
        "offset": offset,
        "entry": entry,
        "index": index,
        "at": at,
        "key": one.key,
        "aggregate": one.aggregate,
        "type": one.type,
        "void": bool(one.why),
        **({"why": one.why} if one.why else {}),
        "by": one.by,
        **({"request": one.request} if one.request else {}),
        **({"principal": one.principal} if one.principal else {}),
        "value": msgspec.Raw(one.value),
    }
