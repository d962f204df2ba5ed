"""The open feeds: what each sends to its page as server-sent events, how many there may be, and how they end.

A feed reads from the ring at its own pace: one whose page reads slowly falls behind, and when the ring has overtaken
it, its page fetches everything anew. Feeds of the same names and rights share what they send. Each ends after a
while, and its page resumes it: at any gateway, and with the credentials that count then. Where there are as many as
there may be, one of the user who has most makes room for a user who has fewer. All end before the HTTP server does,
which would wait for them. Belongs to the event loop.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection

import msgspec
from fastapi.sse import format_sse_event

from api_gateway import metrics
from api_gateway.console.feed.changes import (
    Change,
    MalformedPositionError,
    Position,
    names_of,
    position_of,
    position_text,
)
from api_gateway.console.feed.watch import ChangeWatch, MaySee, News
from api_gateway.edge.errors import BadRequestError, OverloadedError
from sluice.engine.ports import Clock

MAX_ITEMS = 1_000
"""Changes in one event; beyond that everything is fetched anew."""

MAX_LIFE_S = 300.0
"""How long a feed goes on before its page resumes it."""

END_S = 0.5
"""How long feeds may take to say goodbye."""

RETRY_MS = 1_000
RATES_S = 2.0
"""As often as a segment is measured."""
_encode = msgspec.json.Encoder().encode


Rates = Callable[[], list[bytes]]
"""Gives events about rates as they are now."""


class ChangedItem(msgspec.Struct, rename="camel", omit_defaults=True):
    """A change as pages get it; `version` is that of the aggregate now, left out for what has none."""

    aggregate: str
    types: list[str]
    at: int
    version: int = 0


class Hello(msgspec.Struct, frozen=True):
    """What every feed begins with: the cluster's name, and the hash of the page's folder, "" without a page."""

    cluster: str
    page: str


class Feeds:
    """At most `most` feeds of a watch."""

    def __init__(self, watch: ChangeWatch, clock: Clock, hello: Hello, most: int) -> None:
        self._watch = watch
        self._clock = clock
        self._hello = hello
        self._most = most
        self._open: dict[Feed, None] = {}
        self._is_ending = False
        self._ended = asyncio.Event()

    def open(
        self,
        names: Collection[str],
        since: str = "",
        may_see: MaySee | None = None,
        count: int = 0,
        rates: Rates | None = None,
        principal: str = "",
    ) -> "Feed":
        """A feed of what has these names, from a position on, for a user or nobody; `close` it at the end.

        `may_see` says which subjects its caller may see, without it all; with a `count` it ends after so many events.
        `rates` gives events about rates, which are sent every `RATES_S`. Raises OverloadedError, BadRequestError.
        """
        if self._is_ending or not self._has_room_for(principal):
            metrics.FEEDS_REFUSED.inc()
            why = "this gateway is stopping" if self._is_ending else f"feeds of events: {self._most}, no more may be"
            raise OverloadedError(why)
        self._watch.listen()
        try:
            position = position_of(since) if since else None
        except MalformedPositionError as error:
            raise BadRequestError(f"since: {error}") from error
        feed = Feed(self, frozenset(names), position, may_see, count, rates, principal)
        self._open[feed] = None
        metrics.FEEDS.set(len(self._open))
        return feed

    def _has_room_for(self, principal: str) -> bool:
        """Ends the oldest feed of the user who has most, if that one has no fewer afterwards than this user then."""
        if len(self._open) < self._most:
            return True
        counts = Counter(feed.principal for feed in self._open)
        greatest, count = counts.most_common(1)[0]
        if count < counts[principal] + 2:
            return False
        oldest = next(feed for feed in self._open if feed.principal == greatest)
        oldest.is_displaced = True
        self.closed(oldest)
        self._watch.wake()
        return True

    def closed(self, feed: "Feed") -> None:
        """Count the feed no more."""
        self._open.pop(feed, None)
        metrics.FEEDS.set(len(self._open))
        if not self._open:
            self._ended.set()

    @property
    def watch(self) -> ChangeWatch:
        return self._watch

    @property
    def is_ending(self) -> bool:
        return self._is_ending

    async def stop(self) -> None:
        """End all feeds, open no more, and listen no more. A feed whose page does not read is not waited for."""
        self._is_ending = True
        self._watch.wake()
        if self._open:
            self._ended.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_S):
                    await self._ended.wait()
        await self._watch.stop()

    def hello(self, position: Position) -> bytes:
        """The first event of a feed; up to its position the page has everything."""
        body = {"position": position_text(position), **msgspec.structs.asdict(self._hello), "now": self._clock.now_ms()}
        return format_sse_event(
            event="hello", data_str=_encode(body).decode(), id=position_text(position), retry=RETRY_MS
        )

    def beat(self, position: Position) -> bytes:
        """The event that says that nothing is missing up to a position."""
        at = position_text(position)
        body = {"now": self._clock.now_ms(), "position": at}
        return format_sse_event(event="beat", data_str=_encode(body).decode(), id=at)

    def frame(self, news: News, names: frozenset[str], may_see: MaySee | None) -> bytes:
        """What changed of these names as an event; empty if nothing has."""
        if not news.changes:
            return b""
        found = news.frames.get((names, may_see))
        if found is None:
            changes = [c for c in news.changes if is_named(c, names) and (may_see is None or may_see(c.subject))]
            found = news.frames[names, may_see] = self._framed(news, changes)
        return found

    def _framed(self, news: News, changes: list[Change]) -> bytes:
        if not changes:
            return b""
        if len(changes) > MAX_ITEMS:
            return many(news.position)
        position = position_text(news.position)
        items = [self._item(change) for change in changes]
        body = _encode({"items": items, "position": position}).decode()
        return format_sse_event(event="changed", data_str=body, id=position)

    def _item(self, change: Change) -> ChangedItem:
        version = 0 if change.subject.startswith("txn:") else self._watch.version(change.subject)
        return ChangedItem(change.subject, list(change.types), change.at, version)


class Feed:
    """One feed; see Feeds.open. One that `is_displaced` ends, and is not counted any more."""

    def __init__(
        self,
        feeds: Feeds,
        names: frozenset[str],
        since: Position | None,
        may_see: MaySee | None,
        count: int,
        rates: Rates | None,
        principal: str,
    ) -> None:
        self.principal = principal
        self.is_displaced = False
        self._feeds = feeds
        self._names = names
        self._since = since
        self._may_see = may_see
        self._count = count
        self._rates = rates

    def close(self) -> None:
        """The caller of `Feeds.open` does this at the end, whether or not anything was sent."""
        self._feeds.closed(self)

    async def events(self) -> AsyncGenerator[bytes, None]:
        """The events as they are sent; ends with `bye`."""
        left = self._count
        async with contextlib.aclosing(self._all_events()) as every:
            async for event in every:
                yield event
                left -= 1
                if left == 0:
                    yield bye("counted")
                    return

    async def _all_events(self) -> AsyncGenerator[bytes, None]:
        feeds, watch = self._feeds, self._feeds.watch
        loop = asyncio.get_running_loop()
        end_at = loop.time() + MAX_LIFE_S
        with watch.watching():
            # What is sent says up to which position it has everything: that of the last look.
            read, position, beats = watch.end, watch.position, watch.beats
            missed = self._missed()
            # Whose connection breaks before the second event has not got what it missed.
            yield feeds.hello(self._since if missed and self._since else position)
            if missed:
                yield missed
            rates_at = loop.time()
            while not feeds.is_ending:
                if loop.time() >= end_at:
                    yield bye("expired")
                    return
                if self.is_displaced:
                    yield bye("displaced")
                    return
                if self._rates is not None and loop.time() >= rates_at:
                    rates_at = loop.time() + RATES_S
                    for event in self._rates():
                        yield event
                if watch.end == read and watch.beats == beats:
                    await self._next_turn(rates_at)
                    continue
                news, read, position = watch.since(read), watch.end, watch.position
                if news is None:
                    yield many(position)
                elif frame := feeds.frame(news, self._names, self._may_see):
                    yield frame
                if watch.beats != beats:
                    beats = watch.beats
                    yield feeds.beat(position)
            yield bye("stopping")

    async def _next_turn(self, rates_at: float) -> None:
        """Return when something may have to be sent."""
        if self._rates is None:
            await self._feeds.watch.next_turn()
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(rates_at):
                await self._feeds.watch.next_turn()

    def _missed(self) -> bytes:
        """What changed since the position that it goes on from; empty if nothing has."""
        if self._since is None:
            return b""
        resumed = self._feeds.watch.resumed(self._since)
        if resumed is None:
            return many(self._feeds.watch.position)
        return self._feeds.frame(resumed, self._names, self._may_see)


def is_named(change: Change, names: frozenset[str]) -> bool:
    """Whether a feed of these names has the change."""
    return "*" in names or any(name in names for name in names_of(change.subject))


def many(position: Position) -> bytes:
    """The event that says that too much changed up to a position to name it."""
    return format_sse_event(event="many", data_str="{}", id=position_text(position))


def bye(reason: str) -> bytes:
    """The last event of a feed."""
    return format_sse_event(event="bye", data_str=_encode({"reason": reason}).decode())
