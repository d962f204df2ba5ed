"""Pages of what a caller may see: full as long as there is more, complete over all pages, bounded in work."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.gateway.security.support import NONE, READ

from api_gateway.edge import listing
from api_gateway.edge.listing import Listing
from api_gateway.edge.security.guard import calling
from sluice.security.caller import Caller


def names_of(count: int) -> list[str]:
    return [f"n{number:06}" for number in range(count)]


class Names:
    """A listing of names in memory; `turns` counts how often it was begun."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.turns = 0

    async def fetch(self, behind: str) -> Iterator[str]:
        self.turns += 1
        return iter([name for name in self.names if name > behind])

    @property
    def listing(self) -> Listing[str, str]:
        return Listing(self.fetch, str, str, str)


def reader_of(visible: set[str]) -> Caller:
    return Caller("me", lambda resource: READ if resource in visible else NONE)


async def pages(names: Names, caller: Caller | None, limit: int) -> list[list[str]]:
    found, behind = [], ""
    with calling(caller):
        while True:
            page = await names.listing.page(behind, limit)
            assert page is not None
            found.append(page.items)
            if page.behind is None:
                return found
            assert page.items, "an empty page is only at the end"
            assert page.behind == page.items[-1]
            behind = page.behind


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 7), st.integers(1, 5), st.integers(1, 20))
def test_all_pages_together_are_what_the_caller_may_see(seen: list[bool], limit: int, turn: int, most: int) -> None:
    names = Names(names_of(len(seen)))
    visible = {name for name, is_seen in zip(names.names, seen, strict=True) if is_seen}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing, "AT_A_TIME", turn)
        patch.setattr(listing, "MAX_EXAMINED", most)
        found = asyncio.run(pages(names, reader_of(visible), limit))
    assert [name for page in found for name in page] == sorted(visible)
    assert all(len(page) <= limit for page in found)


async def test_pages_are_full_where_most_names_are_left_out() -> None:
    names = Names(names_of(3000))
    visible = set(names.names[::100])
    assert [len(page) for page in await pages(names, reader_of(visible), 10)] == [10, 10, 10, 0]


@pytest.mark.parametrize("count", [0, 1, 10, 25])
async def test_without_authentication_pages_are_as_they_always_were(count: int) -> None:
    names = Names(names_of(count))
    found = await pages(names, None, 10)
    assert [name for page in found for name in page] == names.names
    assert names.turns == len(found) == max(1, -(-count // 10))


async def test_other_tasks_run_while_a_caller_sees_nothing_of_a_long_listing() -> None:
    names, turns = Names(names_of(3 * listing.AT_A_TIME)), 0

    async def beside() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(beside())
    assert await pages(names, Caller("me", lambda _resource: NONE), 10) == [[]]
    task.cancel()
    assert turns >= 3


async def test_a_page_with_something_on_it_is_returned_when_the_rest_takes_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listing, "AT_A_TIME", 10)
    monkeypatch.setattr(listing, "MAX_EXAMINED", 50)
    names = Names(names_of(1000))
    with calling(reader_of({names.names[0], names.names[999]})):
        page = await names.listing.page("", 2)
    assert page == listing.Page([names.names[0]], names.names[0])
    assert names.turns == 5


async def test_a_listing_as_a_whole_is_in_one_piece() -> None:
    names = Names(names_of(5 * listing.AT_A_TIME))
    with calling(reader_of(set(names.names[1::2]))):
        assert await names.listing.whole() == names.names[1::2]
    assert await names.listing.whole() == names.names
