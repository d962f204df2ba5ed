"""The tokens that a client fetches: for what, and how long each is used."""

import math
import time

import pytest

from sluice.pravega.tokens import RENEWED_S, FetchedTokens, expiry_of
from sluice.security.tokens import signed

FIRST, SECOND = "s/t/0.#epoch.0", "s/t/1.#epoch.0"


class Fetched:
    """Tokens that count for `ttl_s` seconds."""

    def __init__(self, ttl_s: int) -> None:
        self.ttl_s = ttl_s
        self.fetched: list[tuple[str, bool]] = []
        self.tokens = FetchedTokens(self.fetch)

    async def fetch(self, segment: str, is_append: bool) -> str:
        self.fetched.append((segment, is_append))
        return signed(b"k", {"number": len(self.fetched), "exp": int(time.time()) + self.ttl_s})


async def test_the_segments_of_a_stream_share_a_token_to_append_and_one_for_the_rest() -> None:
    world = Fetched(600)
    requests = [await world.tokens.for_request(segment) for segment in (FIRST, SECOND, FIRST)]
    appends = [await world.tokens.for_append(segment) for segment in (SECOND, FIRST)]
    assert len(set(requests)) == len(set(appends)) == 1 and set(requests) != set(appends)
    assert world.fetched == [(FIRST, False), (SECOND, True)]
    await world.tokens.for_request("s/other/0.#epoch.0")
    assert len(world.fetched) == 3


@pytest.mark.parametrize(("ttl_s", "fetched"), [(RENEWED_S - 1, 2), (RENEWED_S + 60, 1)])
async def test_a_token_that_is_about_to_expire_is_replaced(ttl_s: float, fetched: int) -> None:
    world = Fetched(int(ttl_s))
    for _ in range(2):
        await world.tokens.for_request(FIRST)
    assert len(world.fetched) == fetched


async def test_a_forgotten_token_is_replaced() -> None:
    world = Fetched(600)
    first = await world.tokens.for_request(FIRST)
    world.tokens.forget(SECOND)
    assert await world.tokens.for_request(FIRST) != first


@pytest.mark.parametrize("token", ["", "fixed", "a.b.c", "a.e30.c", signed(b"k", {"exp": "soon"})])
def test_a_token_that_says_nothing_of_its_end_has_none(token: str) -> None:
    assert expiry_of(token) == math.inf


def test_the_end_of_a_token_is_what_it_says() -> None:
    assert expiry_of(signed(b"k", {"exp": 1_700_000_600})) == 1_700_000_600
