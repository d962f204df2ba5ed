"""Documents in OpenSearch or in Elasticsearch, by the same requests: one index with one shard.

OpenSearch's client speaks to both; Elasticsearch's own refuses the other.

Writes are conditional on sequence number and primary term, creations on `op_type=create`; `get` reads from the
translog and sees every write at once. A search does not: it sees what was there at the last refresh. So `under` sends
a refresh first and searches then, two requests however many documents there are. To refresh with every write
instead would let one request do, but was measured to double the time of each write, and renewals of locks are far more
frequent than lists. The index holds `id` as a keyword, which can be searched by prefix (`_id` cannot), and the body
beside it, unindexed. One shard: sequence numbers of all documents are one order, and a search is of one moment.

Concurrency: as DocumentStore says. In OpenSearch the index must be replicated by document (the default), not by
segment: with the latter a replica may search what is older than the refresh. Elasticsearch knows no other.
"""

import asyncio
from collections.abc import Awaitable
from typing import Any
from urllib.parse import quote

from opensearchpy import AsyncOpenSearch
from opensearchpy.exceptions import ConflictError as SearchConflictError
from opensearchpy.exceptions import ConnectionError as SearchConnectionError
from opensearchpy.exceptions import NotFoundError, OpenSearchException, TransportError

from sluice_coordination.document import (
    MAX_LISTED,
    Body,
    Document,
    Version,
    check_count,
    check_id,
    check_prefix,
    encode_body,
)
from sluice_coordination.errors import ConflictError, StoreFailedError, StoreUnavailableError

FORMAT = 1
_INDEX = {
    "settings": {"number_of_shards": 1, "auto_expand_replicas": "0-1", "max_result_window": MAX_LISTED},
    "mappings": {
        "dynamic": False,
        "_meta": {"sluice_format": FORMAT},
        "properties": {"id": {"type": "keyword"}, "body": {"type": "object", "enabled": False}},
    },
}
_DONE, _CONFLICT = 200, 409
_PASSING = (408, 429, 502, 503, 504)
_CREATE_TIMES = 10
_CREATE_S = 30.0
"""Once per index, and slower than anything else."""


class SearchStore:
    """See DocumentStore."""

    def __init__(self, client: AsyncOpenSearch, index: str, timeout_s: float) -> None:
        self.timeout_s = timeout_s
        self._client = client
        self._index = index

    @classmethod
    async def open(cls, url: str, index: str, timeout_s: float = 2.0, authorities: str | None = None) -> "SearchStore":
        """Connect to a server, and create the index if there is none.

        `authorities` is a PEM file with what an `https://` server is trusted by; None: what is known everywhere.

        Raises StoreUnavailableError; StoreFailedError if there is an index of that name with other contents.
        """
        tls: dict[str, Any] = {} if authorities is None else {"ca_certs": authorities}
        # A conditional write that the client repeats by itself reports a conflict with its own first attempt.
        client = AsyncOpenSearch(
            [url],
            max_retries=0,
            retry_on_timeout=False,
            timeout=timeout_s,
            pool_maxsize=16,
            **tls,
        )
        store = cls(client, index, timeout_s)
        try:
            await store._ensure_index()
        except BaseException:
            await client.close()
            raise
        return store

    async def get(self, id: str) -> Document | None:
        """See DocumentStore."""
        try:
            found = await self._within(self._client.get(index=self._index, id=check_id(id)))
        except NotFoundError as error:
            if isinstance(error.info, dict) and error.info.get("found") is False:
                return None
            raise StoreFailedError(f"the search server: {_said(error)}") from error
        return _document(found)

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        """See DocumentStore."""
        encode_body(body)
        condition: dict[str, Any] = {"op_type": "create"}
        if expected is not None:
            condition = {"if_seq_no": expected.number, "if_primary_term": expected.term}
        # The client would use PUT, which aiohttp repeats by itself when a connection that was kept open turns out to be
        # closed, also if the server has got the first one.
        path = f"/{self._index}/_doc/{quote(check_id(id), safe='')}"
        document = {"id": id, "body": body}
        call = self._client.transport.perform_request("POST", path, params=condition, body=document)
        return _version(await self._write(call, id, expected))

    async def delete(self, id: str, expected: Version) -> None:
        """See DocumentStore."""
        # A bulk of one, which is a POST: aiohttp repeats DELETE by itself as it does PUT, see `put`.
        which = {"_id": check_id(id), "if_seq_no": expected.number, "if_primary_term": expected.term}
        call = self._client.bulk(index=self._index, body=[{"delete": which}])
        answer = (await self._write(call, id, expected))["items"][0]["delete"]
        status = answer["status"]
        if status == _CONFLICT or answer.get("result") == "not_found":
            raise ConflictError(f"{id} is not at {expected}: {_in_words(answer)}")
        if status in _PASSING:
            raise StoreUnavailableError(f"the search server: {_in_words(answer)}")
        if status != _DONE:
            raise StoreFailedError(f"the search server: {_in_words(answer)}")

    async def under(self, prefix: str) -> dict[str, Document]:
        """See DocumentStore."""
        query = {"prefix": {"id": {"value": check_prefix(prefix)}}} if prefix else {"match_all": {}}
        body = {
            "query": query,
            "size": MAX_LISTED,
            "sort": [{"id": "asc"}],
            "seq_no_primary_term": True,
            "track_total_hits": True,
        }
        whole = {"allow_partial_search_results": "false"}
        try:
            refreshed = await self._within(self._client.indices.refresh(index=self._index))
            if failed := refreshed["_shards"]["failed"]:
                raise StoreUnavailableError(f"the search server: the refresh failed on {failed} copies")
            found = await self._within(self._client.search(index=self._index, body=body, params=whole))
        except NotFoundError as error:
            raise StoreFailedError(f"the search server: {_said(error)}") from error
        if found["timed_out"]:
            raise StoreUnavailableError("the search server: the search did not end in time")
        check_count(found["hits"]["total"]["value"], prefix)
        return {hit["_id"]: _document(hit) for hit in found["hits"]["hits"]}

    async def close(self) -> None:
        """See DocumentStore."""
        await self._client.close()

    async def _write(self, call: Awaitable[Any], id: str, expected: Version | None) -> Any:
        try:
            return await self._within(call)
        except SearchConflictError as error:
            raise ConflictError(f"{id} is not at {expected}: {_said(error)}") from error
        except NotFoundError as error:
            raise StoreFailedError(f"the search server: {_said(error)}") from error

    async def _ensure_index(self) -> None:
        for _ in range(_CREATE_TIMES):
            try:
                found = await self._within(self._client.indices.get_mapping(index=self._index))
            except NotFoundError:
                await self._create_index()
                continue
            meta = found.get(self._index, {}).get("mappings", {}).get("_meta", {})
            if meta.get("sluice_format") != FORMAT:
                raise StoreFailedError(f"the index {self._index!r} is there and was not made for these documents")
            return
        raise StoreUnavailableError(f"the search server: the index {self._index!r} comes and goes")

    async def _create_index(self) -> None:
        try:
            call = self._client.indices.create(index=self._index, body=_INDEX, params={"request_timeout": _CREATE_S})
            await self._within(call, _CREATE_S)
        except StoreFailedError as error:
            if "resource_already_exists_exception" not in str(error):
                raise

    async def _within(self, call: Awaitable[Any], timeout_s: float | None = None) -> Any:
        """Raises NotFoundError and ConflictError of the client, for those who know what they mean."""
        try:
            async with asyncio.timeout(timeout_s or self.timeout_s):
                return await call
        except (SearchConflictError, NotFoundError):
            raise
        except (TimeoutError, OSError, SearchConnectionError) as error:
            raise StoreUnavailableError(f"the search server: {_said(error)}") from error
        except TransportError as error:
            if error.status_code in _PASSING:
                raise StoreUnavailableError(f"the search server: {_said(error)}") from error
            raise StoreFailedError(f"the search server: {_said(error)}") from error
        except OpenSearchException as error:
            raise StoreFailedError(f"the search server: {_said(error)}") from error


def _said(error: Exception) -> str:
    """What the server says of an error, or its client; or what kind of error it is."""
    if isinstance(error, TransportError) and isinstance(error.info, dict):
        return _in_words({"status": error.status_code, **error.info})
    said = error.error if isinstance(error, TransportError) else str(error)
    return said or type(error).__name__


def _in_words(answer: dict[str, Any]) -> str:
    """An answer with an error: its status, the error's type, and the reason; or what else became of the request."""
    error = answer.get("error", answer.get("result", ""))
    parts = (error.get("type"), error.get("reason")) if isinstance(error, dict) else (error,)
    return " ".join(str(part) for part in (answer.get("status"), *parts) if part)


def _version(answer: Any) -> Version:
    return Version(answer["_primary_term"], answer["_seq_no"])


def _document(found: Any) -> Document:
    return Document(found["_source"]["body"], _version(found))
