"""Documents in memory: the twin of the other stores, for tests and for a process on its own.

Concurrency: methods never wait, so each is done in one step of the event loop.
"""

from sluice_coordination.document import (
    Body,
    Document,
    Version,
    check_count,
    check_id,
    check_prefix,
    decode_body,
    encode_body,
)
from sluice_coordination.errors import ConflictError


class MemoryStore:
    """See DocumentStore. Bodies are stored as JSON, so that what is read is never what another caller still changes."""

    def __init__(self, timeout_s: float = 2.0) -> None:
        self.timeout_s = timeout_s
        self._documents: dict[str, tuple[bytes, Version]] = {}
        self._writes = 0

    async def get(self, id: str) -> Document | None:
        """See DocumentStore."""
        found = self._documents.get(check_id(id))
        return None if found is None else Document(decode_body(found[0], id), found[1])

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        """See DocumentStore."""
        data = encode_body(body)
        self._require(id, expected)
        self._writes += 1
        version = Version(0, self._writes)
        self._documents[id] = (data, version)
        return version

    async def delete(self, id: str, expected: Version) -> None:
        """See DocumentStore."""
        self._require(id, expected)
        del self._documents[id]

    async def under(self, prefix: str) -> dict[str, Document]:
        """See DocumentStore."""
        check_prefix(prefix)
        ids = sorted(id for id in self._documents if id.startswith(prefix))
        check_count(len(ids), prefix)
        return {id: Document(decode_body(self._documents[id][0], id), self._documents[id][1]) for id in ids}

    async def close(self) -> None:
        """See DocumentStore; the documents are gone with the object."""

    def _require(self, id: str, expected: Version | None) -> None:
        found = self._documents.get(check_id(id))
        version = None if found is None else found[1]
        if version != expected:
            raise ConflictError(f"{id} is at {version}, not at {expected}")
