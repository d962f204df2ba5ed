"""Places for work that takes long, shared out among those who call: one of them cannot have them all.

Where callers are not authenticated there is one principal for all, and no share. Belongs to the event loop.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from api_gateway.edge.errors import OverloadedError, QuotaExceededError
from sluice.security.caller import calling_principal


class Shares:
    """At most `count` pieces of work are under way or wait, a quarter of them of one principal; `of` names them."""

    def __init__(self, count: int, of: str) -> None:
        self._count = count
        self._share = max(1, count // 4)
        self._of = of
        self._under_way = 0
        self._taken: Counter[str] = Counter()
        self._all_free = asyncio.Event()
        self._all_free.set()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """A place of the caller's is taken inside. Raises OverloadedError, QuotaExceededError."""
        principal = calling_principal()
        if self._under_way >= self._count:
            raise OverloadedError(f"{self._of}: {self._count} are under way or wait, no more may")
        if principal and self._taken[principal] >= self._share:
            raise QuotaExceededError(f"{self._of}: {self._share} of one user may be under way or wait")
        self._taken[principal] += 1
        self._under_way += 1
        self._all_free.clear()
        try:
            yield
        finally:
            self._taken[principal] -= 1
            self._under_way -= 1
            if not self._taken[principal]:
                del self._taken[principal]
            if not self._under_way:
                self._all_free.set()

    async def until_free(self, timeout_s: float) -> None:
        """Return when no place is taken, or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._all_free.wait()
