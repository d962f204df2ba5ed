"""Where a part of a source stands, in a document of its own: a partition, a URL.

A node that begins with it writes its own name into the document, and every later write is on the version of the one
before. So a former holder that comes late can note nothing any more, and the position never goes back. Fences are not
compared: they order the holders of one lock, and a part that is dealt anew comes under another one.

Concurrency: belongs to one event loop and to one task at a time.
"""

from collections.abc import Callable

import msgspec

from distributed_ingest.patience import until_answered
from sluice_coordination import ConflictError, Document, DocumentStore, LockLostError, TaskContext

Position = dict[str, object]
"""A JSON object; what it holds is the source's."""


class _Page(msgspec.Struct, frozen=True):
    by: str
    position: dict[str, object]


class Ledger:
    """The position of one part, in the hands of the task that has it. Made by `begin`."""

    def __init__(self, store: DocumentStore, id: str, by: str, check: Callable[[], None]) -> None:
        self.position: Position = {}
        self._store = store
        self._id = id
        self._by = by
        self._check = check
        self._document: Document | None = None

    @classmethod
    async def begin(cls, store: DocumentStore, id: str, context: TaskContext) -> "Ledger":
        """Take the part over from its last node, with the position as noted last; `{}` at first.

        Raises LockLostError, StoreFailedError.
        """
        ledger = cls(store, id, context.held_lock.holder, context.check)
        while True:
            await ledger._read()
            if await ledger._put(ledger.position):
                return ledger

    async def note(self, position: Position) -> None:
        """Note a position. Raises LockLostError; a store that is away is waited for, as long as the lock lasts."""
        if position == self.position:
            return
        # On a conflict either an own write without an answer was done after all, or another node has the part.
        while not await self._put(position):
            if await self._read() != self._by:
                raise LockLostError(self._id)
        self.position = position

    async def _read(self) -> str | None:
        """Take the document as it is; return who wrote it."""
        self._document = await until_answered(lambda: self._store.get(self._id), self._check)
        if self._document is None:
            return None
        page = msgspec.convert(self._document.body, _Page)
        self.position = page.position
        return page.by

    async def _put(self, position: Position) -> bool:
        """Write on the version last seen; return False if that is not the present one."""
        body = msgspec.to_builtins(_Page(self._by, position))
        seen = None if self._document is None else self._document.version
        try:
            version = await until_answered(lambda: self._store.put(self._id, body, seen), self._check)
        except ConflictError:
            return False
        self._document = Document(body, version)
        return True


async def positions(store: DocumentStore, prefix: str) -> dict[str, Position]:
    """Return the positions of all parts, by their ids without the prefix."""
    documents = await store.under(prefix)
    return {id.removeprefix(prefix): msgspec.convert(found.body, _Page).position for id, found in documents.items()}
