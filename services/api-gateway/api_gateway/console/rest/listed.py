"""The lists of names that this interface has, page by page: what a caller wants of one, and the answer."""

from collections.abc import Iterator
from itertools import takewhile
from typing import Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, Query, Response

from api_gateway.console.paging import DEFAULT, After, Limit, begin_of, position_in, token_of
from api_gateway.console.rest.base import Page
from api_gateway.edge.listing import Listing
from api_gateway.edge.reads import missing_scope
from api_gateway.edge.rest.answers import as_json
from sluice.validation import form

T = TypeVar("T")

Prefix = Annotated[
    str,
    Query(
        max_length=1000,
        pattern=form("^[A-Za-z0-9._-]*$", "letters, digits and ._-"),
        description="Only names that begin like this.",
    ),
]


class Wanted(msgspec.Struct, frozen=True):
    """Which names of a list are wanted: those with the prefix, on the page that the token begins."""

    prefix: str
    limit: int
    after: str


async def _wanted(prefix: Prefix = "", limit: Limit = DEFAULT, after: After = "") -> Wanted:
    return Wanted(prefix, limit, after)


WantedNames = Annotated[Wanted, Depends(_wanted)]


async def listed(kind: type[Page[Any]], listing: Listing[T, Any], wanted: Wanted, scope: str = "") -> Response:
    """The page of what is wanted. Raises BadRequestError, NotFoundError for a missing scope."""

    async def fetch(behind: str) -> Iterator[T] | None:
        items = await listing.fetch(begin_of(behind, wanted.prefix))
        return takewhile(lambda one: listing.name(one).startswith(wanted.prefix), items) if items is not None else None

    page = await msgspec.structs.replace(listing, fetch=fetch).page(position_in(wanted.after), wanted.limit)
    if page is None:
        raise missing_scope(scope)
    return as_json(kind(items=page.items, next=token_of(page.behind) if page.behind is not None else None))
