"""The boundary to where documents are kept: five methods, with one test suite that every store passes.

What each store promises: a write is done only if the document is at the expected version, at once for every process,
and it is durable when it is acknowledged, as far as the server is set so. `get` and `under` show every write that was
acknowledged before they were called. Nothing is attempted twice: a repeated conditional write would meet its own first
attempt and report a conflict that is none.

Concurrency: a store belongs to one event loop; any number of tasks may use it at a time. A call that is cancelled, or
ends with StoreUnavailableError, may have been done, and may still be done later.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol
from urllib.parse import SplitResult, parse_qsl, urlsplit

from sluice_coordination.document import Body, Document, Version


class DocumentStore(Protocol):
    """Documents by id. Every method raises StoreUnavailableError, StoreFailedError."""

    timeout_s: float
    """How long a call may take before it ends with StoreUnavailableError."""

    async def get(self, id: str) -> Document | None:
        """Return the document, None if there is none."""

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        """Replace the document if it is at that version; with None create it, if there is none.

        Returns the new version. Raises ConflictError, and then nothing was written by this call.
        """

    async def delete(self, id: str, expected: Version) -> None:
        """Remove the document if it is at that version; raise ConflictError if it is not, or not there."""

    async def under(self, prefix: str) -> dict[str, Document]:
        """Return all documents whose ids begin with the prefix, by id, in the order of ids, as of one moment."""

    async def close(self) -> None:
        """Close connections and files."""


def file_of(url: str) -> Path | None:
    """Return the file that a store's URL names, all that follows `file:`; None if it names something else."""
    scheme, _, path = url.partition(":")
    named_by_path = scheme.lower() == "file" and (not path.startswith("//") or path.startswith("///"))
    return Path(path) if named_by_path else None


@asynccontextmanager
async def open_store(url: str, timeout_s: float = 2.0) -> AsyncIterator[DocumentStore]:
    """Open the store that a URL names, and close it at the end of the block.

    `memory:` holds documents for this block alone; `file:/path/to/file`, where all that follows `file:` is the path;
    `redis://host:port/db?namespace=name`, with TLS `rediss://…?ssl_ca_certs=file`; `opensearch://host:port/index` or
    `elasticsearch://…`, with TLS `opensearch+https://…?ssl_ca_certs=file` or `elasticsearch+https://…`. A user stands
    before the host, as in `redis://user:password@host`.
    Raises StoreHeldError for a file in use, StoreUnavailableError, StoreFailedError; ValueError for another URL.
    """
    store = await _open(url, timeout_s)
    try:
        yield store
    finally:
        await store.close()


async def _open(url: str, timeout_s: float) -> DocumentStore:
    # Each store's client is imported only by those who use that store.
    if (file := file_of(url)) is not None:
        from sluice_coordination.flat_file import FileStore

        return await FileStore.open(file, timeout_s)
    parts = _split(url)
    match parts.scheme:
        case "memory":
            from sluice_coordination.memory import MemoryStore

            return MemoryStore(timeout_s)
        case "redis" | "rediss":
            from sluice_coordination.redis_store import RedisStore

            return RedisStore.open(url, timeout_s)
        case "opensearch" | "opensearch+https" | "elasticsearch" | "elasticsearch+https":
            from sluice_coordination.search_store import SearchStore

            options = dict(parse_qsl(parts.query, keep_blank_values=True))
            scheme = "https" if parts.scheme.endswith("https") else "http"
            authorities = options.pop("ssl_ca_certs", None) if scheme == "https" else None
            if options:
                raise ValueError(f"{', '.join(sorted(options))} cannot be given in a URL of {parts.scheme}")
            address, index = f"{scheme}://{parts.netloc}", parts.path.strip("/")
            return await SearchStore.open(address, index, timeout_s, authorities)
    raise ValueError(f"no document store is known for URLs of {parts.scheme!r} as this one")


def _split(url: str) -> SplitResult:
    """Return the parts of a URL. Raises ValueError, which never names more than the scheme: there may be a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError(f"the URL of {url.partition(':')[0]!r} has no host and port that can be read") from None
    return parts
