"""What a node has written, by where it came from, and what went wrong; and the sum of all nodes, kept in the store.

A node adds to the sum now and then, and when it ends. So the sum lacks what a node that was killed had not added yet,
about a second of work; and it counts records that were written again.

Concurrency: belongs to one event loop.
"""

import asyncio
import logging
import operator
import time
from collections import deque
from dataclasses import dataclass, field

import msgspec

from distributed_ingest.settle import LONGEST_S, settled
from sluice_cli.units import show_size
from sluice_coordination import ConflictError, CoordinationError, DocumentStore

log = logging.getLogger(__name__)

MAX_ORIGINS = 1_000
OTHERS = "(others)"
AGAIN_S = 60.0
_PROBLEMS_KEPT = 20
_ADD_TIMES = 20


class Counts(msgspec.Struct):
    """`skipped`: records that were left out, each with a problem that says why. `unkeyed`: written without a key."""

    records: int = 0
    bytes: int = 0
    skipped: int = 0
    unkeyed: int = 0

    def text(self) -> str:
        """Return records and bytes for people."""
        return f"{self.records:,} {'record' if self.records == 1 else 'records'}, {show_size(self.bytes)}"

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*map(operator.add, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))

    def __sub__(self, other: "Counts") -> "Counts":
        return Counts(*map(operator.sub, msgspec.structs.astuple(self), msgspec.structs.astuple(other)))


@dataclass
class Tally:
    """The counts of one node.

    `by_origin` names so many origins, the rest together. `problems`: the last ones; `logged_at`: when each was
    logged last, by the clock that is never set.
    """

    total: Counts = field(default_factory=Counts)
    by_origin: dict[str, Counts] = field(default_factory=dict)
    problems: deque[str] = field(default_factory=lambda: deque(maxlen=_PROBLEMS_KEPT))
    logged_at: dict[str, float] = field(default_factory=dict)

    def add(self, origin: str, counts: Counts) -> None:
        """Count what was written."""
        self.total += counts
        name = origin if origin in self.by_origin or len(self.by_origin) < MAX_ORIGINS else OTHERS
        self.by_origin[name] = self.by_origin.get(name, Counts()) + counts

    def problem(self, text: str) -> None:
        """Keep what went wrong, and log it; the same problem is logged again only after a while."""
        now = time.monotonic()
        if text not in self.problems:
            self.problems.append(text)
        elif now - self.logged_at.get(text, -AGAIN_S) < AGAIN_S:
            return
        self.logged_at = {each: at for each, at in self.logged_at.items() if each in self.problems} | {text: now}
        log.warning("%s", text)


class Totals:
    """The sum of all nodes, in the document `id`."""

    def __init__(self, store: DocumentStore, id: str) -> None:
        self._store = store
        self._id = id
        self._reported = Counts()
        self.known = Counts()

    async def tell(self, tally: Tally) -> None:
        """Add what is new in the node's tally, and learn what others have added. Raises CoordinationError.

        After StoreUnavailableError the sum may hold it already; it is then counted twice.
        """
        now = tally.total
        for _ in range(_ADD_TIMES):
            found = await self._store.get(self._id)
            self.known = Counts() if found is None else msgspec.convert(found.body, Counts)
            new = now - self._reported
            if new == Counts():
                return
            summed = self.known + new
            try:
                await self._store.put(self._id, msgspec.to_builtins(summed), None if found is None else found.version)
            except ConflictError:
                continue
            self._reported, self.known = now, summed
            return
        raise CoordinationError(f"{self._id} changes faster than it can be added to")

    async def keep_telling(self, tally: Tally, every_s: float) -> None:
        """Tell until cancelled."""
        while True:
            await asyncio.sleep(every_s)
            try:
                # Not cut short: what may have been added would be added once more at the end.
                await settled(self.tell(tally), lambda: LONGEST_S)
            except CoordinationError as error:
                log.debug("nothing was added to the sum: %s", error)
