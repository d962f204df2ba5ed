"""Feeds over a journal in memory, in virtual time."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping

import pytest
from support.virtual_tests import loop_factories
from unit.gateway.system import MemorySystem

from api_gateway.console.feed.feeds import Feed, Feeds, Hello
from api_gateway.console.feed.watch import ChangeWatch


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Part of pytest-asyncio."""
    return loop_factories(item)


class Reader:
    """A page that reads a feed; `position` is the id of the last event that had one."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._events = feed.events()
        self.position = ""

    async def next(self) -> tuple[str, dict[str, object]]:
        """The name and the body of the next event."""
        lines = (await anext(self._events)).decode().splitlines()
        fields = dict(line.split(": ", 1) for line in lines if line)
        self.position = fields.get("id", self.position)
        return fields["event"], json.loads(fields["data"])

    async def changed(self) -> dict[str, list[str]]:
        """The types by aggregate of the next event of changes; beats are passed over."""
        name, body = await self.next()
        while name == "beat":
            name, body = await self.next()
        assert name == "changed", (name, body)
        items = body["items"]
        assert isinstance(items, list)
        return {item["aggregate"]: item["types"] for item in items}

    async def close(self) -> None:
        await self._events.aclose()
        self._feed.close()


class Gateway:
    """One gateway's feeds."""

    def __init__(self, watch: ChangeWatch, feeds: Feeds) -> None:
        self.watch = watch
        self.feeds = feeds
        self._readers: list[Reader] = []

    async def read(
        self, *names: str, since: str = "", may_see: Callable[[str], bool] | None = None, principal: str = ""
    ) -> Reader:
        """A reader behind the first event."""
        reader = Reader(self.feeds.open(names or ("*",), since, may_see, principal=principal))
        self._readers.append(reader)
        assert (await reader.next())[0] == "hello"
        return reader

    async def stop(self) -> None:
        for reader in self._readers:
            await reader.close()
        await self.feeds.stop()


@pytest.fixture
async def gateway(idle: MemorySystem) -> AsyncIterator[Gateway]:
    """The gateway's own."""
    journal = idle.runtime.journal
    watch = ChangeWatch(journal)
    gateway = Gateway(watch, Feeds(watch, idle.runtime.clock, Hello("c", "p"), 2))
    yield gateway
    await gateway.stop()


@pytest.fixture
async def other(idle: MemorySystem) -> AsyncIterator[Gateway]:
    """A second gateway, which follows the same journal."""
    watch = ChangeWatch(idle.journal)
    gateway = Gateway(watch, Feeds(watch, idle.runtime.clock, Hello("c", "p"), 2))
    yield gateway
    await gateway.stop()
