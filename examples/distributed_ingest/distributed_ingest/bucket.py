"""Where objects are: the boundary to S3 and what speaks it, with a twin in memory for tests.

Credentials, region and, without `endpoint`, the address are found as AWS's own tools find them: variables, profile,
role. Concurrency: belongs to one event loop; any number of calls at a time.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple, Protocol

from aiobotocore.config import AioConfig
from aiobotocore.session import get_session
from aiohttp import ClientError as HttpError
from botocore.exceptions import BotoCoreError, ClientError

CONNECT_S, READ_S, ATTEMPTS = 5, 30, 3
CONNECTIONS = 64
PIECE_BYTES = 256 * 1024
_MISSING = ("NoSuchKey", "404")


class BucketError(Exception):
    """The bucket gave no answer that can be used."""


class ObjectMissingError(Exception):
    """The object is not there any more."""


class Stored(NamedTuple):
    """An object that is there. `age_s`: how long ago it was written, by the server's clock."""

    key: str
    size: int
    age_s: float


class Bucket(Protocol):
    """The objects of a bucket whose keys begin with a prefix. Every method raises BucketError."""

    async def after(self, key: str) -> list[Stored]:
        """Return the next objects behind a key, in the order of their keys, all of them or 1,000."""

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Return an object in pieces. Raises ObjectMissingError."""

    async def close(self) -> None:
        """Close connections."""


class S3Bucket:
    """See Bucket."""

    def __init__(self, client: Any, stack: AsyncExitStack, bucket: str, prefix: str) -> None:
        self._client, self._stack = client, stack
        self._bucket, self._prefix = bucket, prefix

    @classmethod
    async def open(cls, bucket: str, prefix: str, endpoint: str) -> "S3Bucket":
        """Make a client; nothing is asked yet. `endpoint`: the URL of what is not AWS. Raises BucketError."""
        config = AioConfig(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            max_pool_connections=CONNECTIONS,
            retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            # Others than AWS have no host name for each bucket.
            s3={"addressing_style": "path"} if endpoint else None,
        )
        stack = AsyncExitStack()
        with _errors():
            opening = get_session().create_client("s3", endpoint_url=endpoint or None, config=config)
            return cls(await stack.enter_async_context(opening), stack, bucket, prefix)

    async def after(self, key: str) -> list[Stored]:
        """See Bucket."""
        start = {"StartAfter": key} if key else {}
        with _errors():
            answer = await self._client.list_objects_v2(Bucket=self._bucket, Prefix=self._prefix, **start)
        date = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
        now = parsedate_to_datetime(date) if date else datetime.now(UTC)
        return [
            Stored(each["Key"], each["Size"], (now - each["LastModified"]).total_seconds())
            for each in answer.get("Contents", ())
        ]

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """See Bucket."""
        async with self._opened(key) as body:
            while True:
                with _errors():
                    piece = await body.read(PIECE_BYTES)
                if not piece:
                    return
                yield piece

    async def close(self) -> None:
        """See Bucket."""
        await self._stack.aclose()

    @asynccontextmanager
    async def _opened(self, key: str) -> AsyncIterator[Any]:
        with _errors():
            answer = await self._client.get_object(Bucket=self._bucket, Key=key)
        async with answer["Body"] as body:
            yield body


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in _MISSING:
            raise ObjectMissingError(str(error)) from error
        raise BucketError(str(error)) from error
    except (BotoCoreError, HttpError, OSError, ValueError) as error:
        raise BucketError(str(error) or type(error).__name__) from error
