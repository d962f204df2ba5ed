"""What the connections over HTTP are for: a call, a body and a feed each have a place, and a tenth is left for probes.

A connection with neither is idle, or answers at once, and may be cut for a new one. So health is shown however many
calls there are. A call has its place until its answer is handed over. Belongs to the event loop.
"""

from collections.abc import AsyncIterator

from fastapi import Depends, Request

from api_gateway.edge.shares import Shares

MAX_SCANS = 40
"""Reads of many states take turns on the event loop, each for some milliseconds (slices.py)."""


class Capacity:
    """What so many connections leave room for; `feeds` is how many feeds there may be."""

    def __init__(self, connections: int) -> None:
        self.calls = Shares(connections // 2, "calls over HTTP")
        self.bodies = Shares(connections // 5, "bodies on their way")
        self.feeds = connections // 5
        self.scans = Shares(MAX_SCANS, "searches and long lists")


def capacity_of(request: Request) -> Capacity:
    """That of the application that is called."""
    capacity: Capacity = request.app.state.capacity
    return capacity


async def _calling(request: Request) -> AsyncIterator[None]:
    with capacity_of(request).calls.taken():
        yield


async def _scanning(request: Request) -> AsyncIterator[None]:
    with capacity_of(request).scans.taken():
        yield


CALL = Depends(_calling)
"""A call that has this needs a place. Raises OverloadedError, QuotaExceededError."""

SCAN = Depends(_scanning, scope="function")
"""One that reads many states needs this too."""
