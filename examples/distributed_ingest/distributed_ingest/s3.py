"""Objects of a bucket into the stream: the leader cuts windows in the order of keys, any node copies them, each once.

A window is a range of keys, so the position is one key, however many objects there are: **what comes later with a key
before the position is not read**. So names have to rise, as those do that begin with a date; and an object is taken,
and what follows it, only when it has been there for a while: others that were begun earlier may end a little later.
An object that is replaced behind the position counts as read. Buckets that are not listed in order (S3's directory
buckets) cannot be read.

A window is written in one transaction, see `Outlet.deliver_once`: each object is in the stream once.

Concurrency: belongs to one event loop.
"""

import time
from collections.abc import AsyncIterator, Sequence

import msgspec

from distributed_ingest.bucket import Bucket, BucketError, ObjectMissingError, S3Bucket, Stored
from distributed_ingest.feed import Reach, Scene, lag
from distributed_ingest.outlet import BATCH_BYTES
from distributed_ingest.records import MAX_EVENT_BYTES, Event, LineSplitter, records_of
from sluice_cli.errors import UnreachableError, UsageError
from sluice_coordination import Functions, SourceState, Task, TaskContext, Window, WindowSource
from sluice_coordination.functions import Json

NAME = "s3"
_FUNCTION = "copy-objects"
MAX_BODY_BYTES = 64 * 1024 * 1024
"""The most an object may have that is not read line by line."""


class Reached(msgspec.Struct, frozen=True):
    """How far objects have been handed out: up to this key, so many."""

    key: str = ""
    objects: int = 0


def bucket_of(url: str) -> tuple[str, str]:
    """Return bucket and prefix of `s3://bucket/prefix`. Raises UsageError."""
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    if not url.startswith("s3://") or not bucket:
        raise UsageError(f"{url!r} names no bucket", "write it as s3://BUCKET or s3://BUCKET/PREFIX")
    return bucket, prefix


class S3:
    """See Feed. `objects`, `window_bytes`: how much a task copies at most; `ahead`: how many tasks at a time.

    `scan_s`: how often the bucket is listed when there was nothing more. `settle_s`: how old an object must be, in
    seconds. `bucket`: a twin; else that of the URL.
    """

    def __init__(
        self,
        scene: Scene,
        url: str,
        endpoint: str,
        *,
        objects: int,
        window_bytes: int,
        ahead: int,
        scan_s: float,
        settle_s: float,
        bucket: Bucket | None = None,
    ) -> None:
        self._scene = scene
        self._url = url
        self._endpoint = endpoint
        self._bucket_given = bucket
        self._objects = objects
        self._window_bytes = window_bytes
        self._ahead = ahead
        self._scan_s = scan_s
        self._settle_s = 0.0 if scene.once else settle_s
        self._listed: Sequence[Stored] = ()
        self._listed_at = float("-inf")

    async def open(self) -> None:
        """See Feed."""
        bucket, prefix = bucket_of(self._url)
        try:
            self._bucket = self._bucket_given or await S3Bucket.open(bucket, prefix, self._endpoint)
            await self._bucket.after("")
        except BucketError as error:
            hint = "is it there, and may you list it? Credentials and region are found as AWS's tools find them"
            raise UnreachableError(f"cannot read {self._url}: {error}", hint) from error

    def register(self, functions: Functions) -> None:
        """See Feed."""
        functions.register(_FUNCTION)(self._copy)

    def source(self) -> WindowSource:
        """See Feed."""
        return WindowSource(NAME, self.next_window, self._ahead)

    async def reach(self, state: SourceState) -> Reach:
        """See Feed. The bucket is listed only when that could be the end."""
        reached = _reached(self.source().position(state))
        under_way = sum(task.arguments["objects"] for task in state.tasks.values())
        try:
            finished = self._scene.once and not state.tasks and not await self._list(reached.key)
        except BucketError:
            finished = False
        return Reach(reached.objects - under_way, None, "objects", finished)

    async def close(self) -> None:
        """See Feed."""
        if hasattr(self, "_bucket"):
            await self._bucket.close()

    # --- the leader's part

    async def next_window(self, position: Json) -> Window | None:
        before = _reached(position)
        rest = [found for found in self._listed if found.key > before.key]
        taken, full = self._taken(rest)
        if not full and ((self._listed and not rest) or time.monotonic() - self._listed_at >= self._scan_s):
            self._listed = await self._list(before.key)
            self._listed_at = time.monotonic()
            taken, _ = self._taken(self._listed)
        if not taken:
            return None
        task = Task(_FUNCTION, {"after": before.key, "last": taken[-1].key, "objects": len(taken)})
        return Window(task, msgspec.to_builtins(Reached(taken[-1].key, before.objects + len(taken))))

    def _taken(self, listed: Sequence[Stored]) -> tuple[list[Stored], bool]:
        """Return what a window has of these objects, and whether it is full."""
        size, taken = 0, list[Stored]()
        for found in listed:
            if found.age_s < self._settle_s:
                break
            taken.append(found)
            size += found.size
            if len(taken) == self._objects or size >= self._window_bytes:
                return taken, True
        return taken, False

    async def _list(self, key: str) -> list[Stored]:
        try:
            return await self._bucket.after(key)
        except BucketError as error:
            # The library asks again; people are to know why nothing comes.
            self._scene.outlet.tally.problem(f"{self._url}: {error}")
            raise

    # --- the part of any node

    async def _copy(self, context: TaskContext, after: str, last: str, objects: int) -> None:
        """Copy the objects behind one key, up to another; they become part of the stream all at once."""
        context.held_lock.report(lag(objects, "objects"))
        try:
            await self._scene.outlet.deliver_once(context, self._scene.store, self._batches(after, last))
        except BucketError as error:
            self._scene.outlet.tally.problem(f"{self._url}: {error}")
            raise

    async def _batches(self, after: str, last: str) -> AsyncIterator[tuple[str, Sequence[Event]]]:
        batch, size = list[Event](), 0
        async for found in self._range(after, last):
            async for record in self._records(found):
                batch.append(self._scene.outlet.event(record, found.key))
                size += len(record)
                if size >= BATCH_BYTES:
                    yield self._url, batch
                    batch, size = [], 0
        if batch:
            yield self._url, batch

    async def _range(self, after: str, last: str) -> AsyncIterator[Stored]:
        while after < last and (listed := await self._bucket.after(after)):
            for found in listed:
                if found.key > last:
                    return
                yield found
            after = listed[-1].key

    async def _records(self, found: Stored) -> AsyncIterator[bytes]:
        """Return the records of an object. What cannot be read as such is left out, and counted."""
        key, form = found.key, self._scene.job.definition.records
        try:
            if form == "lines":
                splitter = LineSplitter()
                async for piece in self._bucket.read(key):
                    for line in splitter.feed(piece):
                        yield line
                for line in splitter.finish():
                    yield line
                if splitter.skipped:
                    self._left_out(key, splitter.skipped, f"lines have more than {MAX_EVENT_BYTES} bytes")
            elif found.size > MAX_BODY_BYTES:
                self._left_out(key, 1, f"the object has more than {MAX_BODY_BYTES} bytes")
            else:
                body = b"".join([piece async for piece in self._bucket.read(key)])
                records = records_of(body, form)
                fitting = [record for record in records if len(record) <= MAX_EVENT_BYTES]
                for record in fitting:
                    yield record
                if too_large := len(records) - len(fitting):
                    self._left_out(key, too_large, f"records have more than {MAX_EVENT_BYTES} bytes")
        except ObjectMissingError:
            self._left_out(key, 1, "the object has gone before its turn came")
        except ValueError as error:
            self._left_out(key, 1, f"the object is {error}; --records says how it is cut")

    def _left_out(self, key: str, count: int, why: str) -> None:
        self._scene.outlet.skipped(key, count, f"{key}: {why}")


def _reached(value: Json) -> Reached:
    return Reached() if value is None else msgspec.convert(value, Reached)
