"""Watching the journal for open pages: a listener that only takes notes, merged into changes four times a second.

The listener stands in the way of the fold, so it appends to a list and no more, and it is there only while a page is
open, or was a minute ago: a page that comes back then has missed nothing. What is noted between two turns is bounded;
beyond that all pages fetch anew. Belongs to the event loop.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from api_gateway.console.feed.changes import Change, Position, Recorded, Ring, joined, merged
from sluice.domain.names import key_of
from sluice.engine.journal import Journal
from sluice.engine.record import Entry

TURN_S = 0.25
BEAT_S = 5.0
LINGER_S = 60.0
"""How long it goes on when the last page has left."""

MAX_RECORDED = 20_000
"""Entries between two turns."""

MaySee = Callable[[str], bool]
"""Says which subjects a caller may see; two that are equal say the same."""


class News:
    """What changed up to a position; `number` is that of the first change that is not among it."""

    def __init__(self, changes: list[Change], position: Position, number: int) -> None:
        self.changes = changes
        self.position = position
        self.number = number
        self.frames: dict[tuple[frozenset[str], MaySee | None], bytes] = {}
        """What it looks like to feeds of the same names and rights; feeds keep it here for each other."""


class ChangeWatch:
    """`on_changes` are called with the changes of each turn, and with None where some are missed from then on.

    `position` is where this process was at the last turn, `end` the number of the next change, `beats` how often
    `BEAT_S` have passed.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._recorded: list[Recorded] = []
        self._has_missed = False
        self.position = self._present()
        self._ring = Ring(self.position)
        self._watchers = 0
        self._turning: asyncio.Task[None] | None = None
        self._leaving: asyncio.TimerHandle | None = None
        self._turned = asyncio.Event()
        self._news: dict[int, News] = {}
        self.beats = 0
        self.on_changes: list[Callable[[list[Change] | None], None]] = []

    @property
    def end(self) -> int:
        return self._ring.end

    @property
    def is_listening(self) -> bool:
        return self._turning is not None

    def version(self, aggregate: str) -> int:
        """The version of an aggregate now; 0 of what is not there."""
        return self._journal.reader(key_of(aggregate)).version(aggregate)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """It listens at least as long as this lasts."""
        self._watchers += 1
        self.listen()
        try:
            yield
        finally:
            self._watchers -= 1
            self._linger()

    def listen(self) -> None:
        """Listen for `LINGER_S` at least, and have everything before this call in `position`."""
        if self._turning is None:
            self._ring.clear(self._present())
            self._journal.on_entry.append(self._note)
            self._turning = asyncio.get_running_loop().create_task(self._turns(), name="change watch")
        self._turn()
        self._linger()

    async def stop(self) -> None:
        """Listen no more."""
        if self._leaving is not None:
            self._leaving.cancel()
        if (turning := self._unlisten()) is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await turning

    def since(self, number: int) -> News | None:
        """What changed from this number on; None if some of it is not known any more."""
        found = self._news.get(number)
        if found is None:
            changes = self._ring.behind(number)
            if changes is None:
                return None
            found = self._news[number] = News(joined(changes), self.position, self._ring.end)
        return found

    def resumed(self, position: Position) -> News | None:
        """What changed behind a position of some gateway; None if some of that is not known here."""
        changes = self._ring.since(position, self.position)
        return News(changes, self.position, self._ring.end) if changes is not None else None

    async def next_turn(self) -> None:
        """Return when something has changed, a beat is due, or `wake` is called."""
        await self._turned.wait()

    def wake(self) -> None:
        """Have all who wait look."""
        self._turned.set()
        self._turned.clear()

    def _present(self) -> Position:
        return tuple(view.next_offset for view in self._journal.views())

    def _note(self, partition: int, entry: Entry[Any, Any]) -> None:
        if entry.events:
            view = self._journal.views()[partition]
            self._recorded.append((partition, view.next_offset - 1, view.last_ms, entry.events))
            if len(self._recorded) > MAX_RECORDED:
                self._recorded.clear()
                self._has_missed = True

    async def _turns(self) -> None:
        loop = asyncio.get_running_loop()
        beat_at = loop.time() + BEAT_S
        while True:
            await asyncio.sleep(TURN_S)
            self._turn()
            if (now := loop.time()) >= beat_at:
                self.beats, beat_at = self.beats + 1, now + BEAT_S
                self.wake()

    def _turn(self) -> None:
        self.position = self._present()
        if not self._recorded and not self._has_missed:
            return
        recorded, self._recorded = self._recorded, []
        has_missed, self._has_missed = self._has_missed, False
        self._news.clear()
        changes = None if has_missed else merged(recorded)
        if changes is None:
            self._ring.clear(self.position)
        else:
            self._ring.add(changes)
        for listener in self.on_changes:
            listener(changes)
        self.wake()

    def _linger(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
        self._leaving = asyncio.get_running_loop().call_later(LINGER_S, self._leave)

    def _leave(self) -> None:
        self._leaving = None
        if self._watchers == 0:
            self._unlisten()

    def _unlisten(self) -> asyncio.Task[None] | None:
        """The task that was turning, which is being cancelled."""
        turning, self._turning = self._turning, None
        if turning is not None:
            turning.cancel()
            self._journal.on_entry.remove(self._note)
            self._recorded.clear()
            self._has_missed = False
            for listener in self.on_changes:
                listener(None)
        return turning
