"""Documents in Redis: one hash of bodies with their versions, one sorted set of ids, changed by Lua scripts.

A script runs at once and alone, so compare-and-set needs no transaction and a list is of one moment. Each namespace
has its keys in one slot of a Redis Cluster. How much survives a crash of the server is the server's setting: only with
`appendonly yes` and `appendfsync always` is a write that was acknowledged never lost. A lock that was lost that way is
free for others at once while its holder learns of it only at its next renewal; fencing covers that window, because
versions go on rising.

Concurrency: as DocumentStore says.
"""

import asyncio
import re
from collections.abc import Awaitable
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.commands.core import AsyncScript
from redis.exceptions import AuthenticationError, RedisError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from sluice_coordination.document import (
    MAX_LISTED,
    Body,
    Document,
    Version,
    check_count,
    check_id,
    check_prefix,
    decode_body,
    encode_body,
)
from sluice_coordination.errors import ConflictError, StoreFailedError, StoreUnavailableError

_CONNECTIONS = 16
_TLS_OPTIONS = (
    *("ssl_ca_certs", "ssl_ca_path", "ssl_ca_data", "ssl_certfile", "ssl_keyfile", "ssl_password"),
    *("ssl_cert_reqs", "ssl_check_hostname", "ssl_min_version"),
)
_SCRIPTS = files("sluice_coordination") / "scripts"
# A server that is full, or no master or without replicas for now, says so in one word, and a later retry may succeed.
# It is the client's status code, or stands in the text; in the middle of it if a script failed: "…: -OOM command …".
_PASSING = re.compile(r"(^|: -)(BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY|TRYAGAIN) ")


class RedisStore:
    """See DocumentStore. `namespace` keeps the documents of several users of one server apart."""

    def __init__(self, url: str, namespace: str = "sluice", timeout_s: float = 2.0) -> None:
        self.timeout_s = timeout_s
        # The deadline of a call is ours: with a socket timeout the client sends inside `wait_for`, which in Python
        # 3.11 can swallow a cancellation.
        self._pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=timeout_s,
            socket_timeout=None,
            socket_connect_timeout=timeout_s,
            retry=Retry(NoBackoff(), 0),
            protocol=2,
        )
        self._client = Redis(connection_pool=self._pool)
        keys = f"{namespace}:{{coordination}}"
        self._bodies, self._ids, self._last = f"{keys}:documents", f"{keys}:ids", f"{keys}:version"
        self._put = self._script("put")
        self._delete = self._script("delete")
        self._under = self._script("under")

    @classmethod
    def open(cls, url: str, timeout_s: float) -> "RedisStore":
        """Make the store that a URL names; `?namespace=` is ours, the rest the client's. Raises ValueError.

        Of the client's options those of the database and of TLS are taken. Others, such as how often it tries, would
        undo what this store promises.
        """
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        namespace = options.pop("namespace", "sluice")
        refused = options.keys() - {"db", *(_TLS_OPTIONS if parts.scheme == "rediss" else ())}
        if refused:
            raise ValueError(f"{', '.join(sorted(refused))} cannot be given in a URL of {parts.scheme}")
        return cls(urlunsplit(parts._replace(query=urlencode(options))), namespace, timeout_s)

    async def get(self, id: str) -> Document | None:
        """See DocumentStore."""
        found: bytes | None = await self._within(self._client.hget(self._bodies, check_id(id)))
        return None if found is None else _document(id, found)

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        """See DocumentStore."""
        data = encode_body(body)
        args = [check_id(id), "" if expected is None else str(expected.number), data]
        done, version = await self._run(self._put, [self._bodies, self._ids, self._last], args)
        if not done:
            raise ConflictError(f"{id} is at {version.decode() or None}, not at {expected}")
        return Version(0, int(version))

    async def delete(self, id: str, expected: Version) -> None:
        """See DocumentStore."""
        done, version = await self._run(self._delete, [self._bodies, self._ids], [check_id(id), expected.number])
        if not done:
            raise ConflictError(f"{id} is at {version.decode() or None}, not at {expected}")

    async def under(self, prefix: str) -> dict[str, Document]:
        """See DocumentStore."""
        args = [check_prefix(prefix), MAX_LISTED]
        count, *flat = await self._run(self._under, [self._bodies, self._ids], args)
        check_count(count, prefix)
        ids = [id.decode() for id in flat[::2]]
        return {id: _document(id, found) for id, found in zip(ids, flat[1::2], strict=True)}

    async def close(self) -> None:
        """See DocumentStore."""
        await self._pool.aclose()

    def _script(self, name: str) -> AsyncScript:
        return self._client.register_script((_SCRIPTS / f"{name}.lua").read_text(encoding="utf-8"))

    async def _run(self, script: AsyncScript, keys: list[str], args: list[Any]) -> Any:
        return await self._within(script(keys=keys, args=args))

    async def _within(self, call: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(self.timeout_s):
                return await call
        except AuthenticationError as error:
            raise StoreFailedError(f"Redis: {_said(error)}") from error
        except (TimeoutError, OSError, RedisConnectionError, RedisTimeoutError) as error:
            raise StoreUnavailableError(f"Redis: {_said(error)}") from error
        except RedisError as error:
            kind = StoreUnavailableError if _PASSING.search(_said(error)) else StoreFailedError
            raise kind(f"Redis: {_said(error)}") from error


def _said(error: Exception) -> str:
    """Return the text of an error as Redis has sent it, or what kind of error it is."""
    code = error.status_code if isinstance(error, RedisError) else None
    return f"{code or ''} {error}".strip() or type(error).__name__


def _document(id: str, found: bytes) -> Document:
    version, _, data = found.partition(b" ")
    return Document(decode_body(data, id), Version(0, int(version)))
