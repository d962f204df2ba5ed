"""Pages of listings for a caller who may not see all of it.

What the caller may not READ is left out, and what follows fills the page, so that an empty page is only at the end.
Where a page ends is the last name on it: no token has a name that was left out. After `AT_A_TIME` names other tasks
run; after `MAX_EXAMINED` a page that has something on it is returned as it is.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

import msgspec

from sluice.security.caller import CALLER, Caller
from sluice.security.resources import Permission

AT_A_TIME = 2_000
MAX_EXAMINED = 50_000

T = TypeVar("T")
Shown = TypeVar("Shown")


def may_read(resource: str) -> bool:
    """Whether the caller may; everyone may everything where authentication is off."""
    caller = CALLER.get()
    return caller is None or _may_read(caller, resource)


def _may_read(caller: Caller, resource: str) -> bool:
    return caller.permission_on(resource) >= Permission.READ


class Page(msgspec.Struct, Generic[Shown], frozen=True):
    """`behind` is the last name on it, where the next page begins; None at the end."""

    items: list[Shown]
    behind: str | None


class Listing(msgspec.Struct, Generic[T, Shown], frozen=True):
    """What is listed.

    `fetch` gives what lies behind a name, in order, to be walked before the next await; None: there is no such scope.
    `name` is that of an item, `resource` that of a name; `show` makes of an item what is on the page.
    """

    fetch: Callable[[str], Awaitable[Iterator[T] | None]]
    name: Callable[[T], str]
    resource: Callable[[str], str]
    show: Callable[[T], Shown]

    async def page(self, behind: str, limit: int) -> Page[Shown] | None:
        """At most `limit` items behind a name. None if there is no such scope."""
        caller = CALLER.get()
        if caller is not None:
            return await self._visible(caller, behind, limit)
        items = await self.fetch(behind)
        if items is None:
            return None
        page = list(islice(items, limit))
        more = next(items, None) is not None
        return Page([self.show(item) for item in page], self.name(page[-1]) if more else None)

    async def whole(self) -> list[Shown]:
        """All items, of what is always there."""
        items: list[Shown] = []
        behind: str | None = ""
        while behind is not None:
            page = await self.page(behind, sys.maxsize)
            items, behind = (items + page.items, page.behind) if page is not None else (items, None)
        return items

    async def _visible(self, caller: Caller, behind: str, limit: int) -> Page[Shown] | None:
        kept: list[Shown] = []
        last, examined = behind, 0
        while (items := await self.fetch(behind)) is not None:
            for item in items:
                if len(kept) == limit:
                    return Page(kept, last)
                behind = self.name(item)
                if _may_read(caller, self.resource(behind)):
                    kept.append(self.show(item))
                    last = behind
                examined += 1
                if examined % AT_A_TIME == 0:
                    break
            else:
                return Page(kept, None)
            if kept and examined >= MAX_EXAMINED:
                return Page(kept, last)
            await asyncio.sleep(0)
        return None
