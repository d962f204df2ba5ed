"""HTTP endpoints that are polled, into the stream: each URL by one node at a time; they are dealt to the nodes.

A poll asks conditionally (ETag, Last-Modified); a body that is the same as before, byte for byte, is not written again.
Nothing but the request has the URL itself, which may hold a password: everywhere else stands its *name*, see `name_of`.

With a *cursor* the URL contains `{cursor}`, which stands for a field of the last record that was written, so that the
endpoint returns what comes after it; then polls follow each other without a pause until nothing new comes.

A body is written as a whole before its position is noted: a node that dies in between has it written again.

Concurrency: belongs to one event loop; one request at a time for each URL.
"""

import asyncio
import functools
import hashlib
import math
import os
import re
import time
from collections.abc import Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import httpx
import msgspec

from distributed_ingest.feed import Reach, Scene
from distributed_ingest.ledger import Ledger, positions
from distributed_ingest.outlet import BATCH_BYTES
from distributed_ingest.patience import PAUSES_S
from distributed_ingest.records import MAX_EVENT_BYTES, Event, field_of, records_of
from distributed_ingest.settle import together
from sluice.security.hiding import shown
from sluice_cli.errors import UsageError
from sluice_coordination import Functions, NodeEntry, PartitionedSource, SourceState, Task, TaskContext

NAME = "http"
CURSOR = "{cursor}"
_FUNCTION = "poll"
CONNECT_S, READ_S, POLL_S = 5.0, 30.0, 300.0
MAX_FAILURES = len(PAUSES_S) + 1
"""So many polls in a row without a usable answer, and `--once` ends without the URL."""
_MAX_CONNECTIONS = 500
"""As many URLs of a node may hang; each has one."""
_KEPT_CONNECTIONS = 20
MAX_BODY_BYTES = 64 * 1024 * 1024
_PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
_PASSWORD = re.compile(r"^([^:/?#]*://[^:/?#@]*):[^/?#]*@")
LONGEST_PAUSE_S = 24 * 3600.0
"""For how long an endpoint may ask to be left alone."""


class State(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a URL stands. `url`: its name; `digest`: SHA-256 of the last body.

    `polls`: how often everything that it had was fetched and is through; with a cursor that is a row of polls up to
    one that brings no other cursor.
    `attempts`: polls with and without a usable answer. `failures`: those without one since the last with one, as the
    task that polls has seen; `failure`: what the last of them failed with.
    """

    url: str = ""
    polls: int = 0
    etag: str = ""
    modified: str = ""
    digest: str = ""
    cursor: str = ""
    attempts: int = 0
    failures: int = 0
    failure: str = ""

    def succeeded(self, *, through: bool, **changed: str) -> "State":
        """After a poll with a usable answer. `through`: it has brought everything that the URL had."""
        return msgspec.structs.replace(
            self, polls=self.polls + through, attempts=self.attempts + 1, failures=0, failure="", **changed
        )

    def failed(self, url: str, failures: int, failure: str) -> "State":
        """After a poll without one."""
        return msgspec.structs.replace(self, url=url, attempts=self.attempts + 1, failures=failures, failure=failure)


class PollError(Exception):
    """The endpoint gave no answer that can be used. `wait_s`: how long it asks to be left alone."""

    def __init__(self, message: str, wait_s: float = 0.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s


class Http:
    """See Feed. A URL that is given twice counts once.

    `cursor_field`: path of the field that is the cursor, `cursor_start` its first value. Raises UsageError.
    """

    def __init__(
        self,
        scene: Scene,
        urls: Sequence[str],
        *,
        every_s: float,
        cursor_field: str,
        cursor_start: str,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._scene = scene
        self._urls = {name_of(url): url for url in urls}
        self._every_s = every_s
        self._cursor_field = cursor_field.split(".") if cursor_field else []
        self._cursor_start = cursor_start
        self._client = _client(transport)
        self._before: dict[str, State] = {}

    async def open(self) -> None:
        """See Feed."""
        for name, url in self._urls.items():
            try:
                usable = httpx.URL(url.replace(CURSOR, "")).scheme in ("http", "https")
            except httpx.InvalidURL:
                usable = False
            if not usable or (CURSOR in url) != bool(self._cursor_field):
                raise UsageError(
                    f"{name!r} cannot be polled",
                    "give http:// or https:// URLs; {cursor} in them together with --cursor FIELD, or neither",
                )
        recorded = await positions(self._scene.store, self._scene.job.progress())
        self._before = {name: _state(recorded.get(_part(name), {})) for name in self._urls}

    def register(self, functions: Functions) -> None:
        """See Feed."""
        functions.register(_FUNCTION)(self._poll)

    def source(self) -> PartitionedSource:
        """See Feed."""
        return PartitionedSource(NAME, self._partition, self._scene.settle_s)

    async def reach(self, state: SourceState) -> Reach:  # noqa: ARG002 - positions say it all
        """See Feed. Finished when each URL was polled to its end, or given up, since this process began."""
        recorded = await positions(self._scene.store, self._scene.job.progress())
        now = {name: _state(recorded.get(_part(name), {})) for name in self._urls}
        done = sum(now[name].polls > before.polls for name, before in self._before.items())
        missed = tuple(
            f"{name}: no usable answer {now[name].failures} times in a row, the last time: {now[name].failure}"
            for name, before in self._before.items()
            if now[name].polls == before.polls
            and now[name].attempts > before.attempts
            and now[name].failures >= MAX_FAILURES
        )
        finished = done + len(missed) == len(self._urls)
        return Reach(done, len(self._urls) if self._scene.once else None, "URLs", finished, missed)

    async def close(self) -> None:
        """See Feed."""
        await self._client.aclose()

    def _partition(self, nodes: Sequence[NodeEntry]) -> list[Task]:
        """Deal the URLs to as many tasks as there are workers."""
        tasks = min(len(self._urls), max(1, sum(node.workers for node in nodes)))
        return [Task(_FUNCTION, {"names": list(self._urls)[number::tasks]}) for number in range(tasks)]

    # --- the part of any node

    async def _poll(self, context: TaskContext, names: list[str]) -> None:
        """Poll these URLs until stopped, each at its own pace."""
        async with together() as group:
            for name in names:
                group.create_task(self._poll_one(context, name))

    async def _poll_one(self, context: TaskContext, name: str) -> None:
        store, job = self._scene.store, self._scene.job
        ledger = await Ledger.begin(store, job.progress(_part(name)), context)
        failures = 0
        while True:
            context.check()
            pause_s = self._every_s
            try:
                moved = await self._once(context, name, ledger)
                failures = 0
                if moved:
                    continue
            except (httpx.HTTPError, httpx.InvalidURL, PollError) as error:
                why = str(error) or type(error).__name__
                self._scene.outlet.tally.problem(f"{name}: {why}")
                failures += 1
                await ledger.note(_recorded(_state(ledger.position).failed(name, failures, why)))
                pause_s = max(self._pause_s(failures), min(LONGEST_PAUSE_S, getattr(error, "wait_s", 0.0)))
            await asyncio.sleep(pause_s)

    def _pause_s(self, failures: int) -> float:
        """How long to pause after so many failures in a row: with `--once` the first ones follow each other soon."""
        soon = self._scene.once and failures <= len(PAUSES_S)
        return min(self._every_s, PAUSES_S[failures - 1]) if soon else self._every_s

    async def _once(self, context: TaskContext, name: str, ledger: Ledger) -> bool:
        """Poll once; return whether the cursor has moved.

        Raises PollError, httpx.HTTPError, httpx.InvalidURL, SinkError, StreamEndedError.
        """
        before = _state(ledger.position)
        cursor = before.cursor or self._cursor_start
        headers = {} if self._cursor_field else _conditions(before)
        answer, body = await self._get(self._urls[name].replace(CURSOR, quote(cursor, safe="")), headers)
        digest = hashlib.sha256(body).hexdigest()
        if answer.status_code in (httpx.codes.NO_CONTENT, httpx.codes.NOT_MODIFIED) or digest == before.digest:
            # Without a body there may be no validators, and the ones before hold.
            same = _validators(answer) if body else {}
            await ledger.note(_recorded(before.succeeded(through=True, **same)))
            return False
        try:
            found = records_of(body, self._scene.job.definition.records)
        except ValueError as error:
            raise PollError(f"the body is {error}; --records says how it is cut") from error
        reached = self._cursor_after(name, found) or before.cursor
        moved = reached != before.cursor
        after = before.succeeded(
            through=not moved,
            url=name,
            digest=digest,
            cursor=reached,
            **_validators(answer),
        )
        fitting = [record for record in found if len(record) <= MAX_EVENT_BYTES]
        await self._write(context, name, fitting, functools.partial(ledger.note, _recorded(after)))
        if too_large := len(found) - len(fitting):
            why = f"{name}: {too_large} records have more than {MAX_EVENT_BYTES} bytes"
            self._scene.outlet.skipped(name, too_large, why)
        return moved

    async def _get(self, url: str, headers: dict[str, str]) -> tuple[httpx.Response, bytes]:
        try:
            async with asyncio.timeout(POLL_S):
                return await self._ask(url, headers)
        except TimeoutError as error:
            raise PollError(f"the answer has not ended for {POLL_S:g} s") from error

    async def _ask(self, url: str, headers: dict[str, str]) -> tuple[httpx.Response, bytes]:
        body = bytearray()
        async with self._client.stream("GET", url, headers=headers) as answer:
            if answer.status_code not in (httpx.codes.OK, httpx.codes.NO_CONTENT, httpx.codes.NOT_MODIFIED):
                wait_s = _retry_after_s(answer.headers.get("Retry-After", ""))
                raise PollError(f"answered {answer.status_code} {answer.reason_phrase}".rstrip(), wait_s)
            async for piece in answer.aiter_bytes():
                body += piece
                if len(body) > MAX_BODY_BYTES:
                    raise PollError(f"the body has more than {MAX_BODY_BYTES} bytes")
        return answer, bytes(body)

    async def _write(self, context: TaskContext, name: str, records: Sequence[bytes], note: Any) -> None:
        outlet = self._scene.outlet
        batch: list[Event] = []
        size = 0
        for record in records:
            batch.append(outlet.event(record, name))
            size += len(record)
            if size >= BATCH_BYTES:
                await outlet.deliver(context, name, batch)
                batch, size = [], 0
        await outlet.deliver(context, name, batch, note)

    def _cursor_after(self, name: str, records: Sequence[bytes]) -> str:
        """Return the cursor of the last record that has one; empty if none has, which is reported."""
        if not self._cursor_field or not records:
            return ""
        for record in reversed(records):
            found = field_of(record, self._cursor_field)
            if found is not None:
                return found if isinstance(found, str) else msgspec.json.encode(found).decode()
        field = ".".join(self._cursor_field)
        self._scene.outlet.tally.problem(f"{name}: no record has the field {field} that --cursor names")
        return ""


def _validators(answer: httpx.Response) -> dict[str, str]:
    """What the next request may name of a body; nothing of one that had changed in the second of the answer.

    It may change again in that second, and a server that counts in seconds would not say so (RFC 9110, 8.8.2.2).
    """
    etag, modified, date = (answer.headers.get(name, "") for name in ("ETag", "Last-Modified", "Date"))
    if modified and not _seconds_of(date) - _seconds_of(modified) >= 1:
        return {"etag": "", "modified": ""}
    return {"etag": etag, "modified": modified}


def _seconds_of(date: str) -> float:
    """Since the epoch; nan for what is no date."""
    try:
        return parsedate_to_datetime(date).timestamp()
    except (TypeError, ValueError):
        return math.nan


def _client(transport: httpx.AsyncBaseTransport | None) -> httpx.AsyncClient:
    """A client that takes the proxies of the environment. Raises UsageError if one cannot be used."""
    try:
        return httpx.AsyncClient(
            timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
            # Those that hang shall take no connection from the others.
            limits=httpx.Limits(max_connections=_MAX_CONNECTIONS, max_keepalive_connections=_KEPT_CONNECTIONS),
            follow_redirects=True,
            transport=transport,
        )
    except (httpx.InvalidURL, ValueError, ImportError) as error:
        # Not the error: it may be a part of a password.
        variables = sorted(name for name in os.environ if name.lower() in _PROXY_VARIABLES)
        raise UsageError(
            f"a proxy cannot be used as {', '.join(variables)} says",
            "give proxies as http://HOST:PORT, and in NO_PROXY hosts, domains and addresses, no networks of IPv6",
        ) from error


def _conditions(before: State) -> dict[str, str]:
    """Servers answer with any text; what is not ASCII cannot go into a request."""
    headers = {"If-None-Match": before.etag, "If-Modified-Since": before.modified}
    return {name: value for name, value in headers.items() if value and value.isascii()}


def _retry_after_s(text: str) -> float:
    """Return the seconds that the header asks for, as a number or a date; 0 if it asks for nothing readable."""
    if text.isdecimal():
        return float(text)
    left_s = _seconds_of(text) - time.time()
    return left_s if left_s > 0 else 0.0


def name_of(url: str) -> str:
    """Return the URL as it is shown; if something of it is hidden, a digest tells it from others.

    That is of the URL without its password: with another one it has the same name.
    """
    name = shown(url)
    digest = hashlib.sha256(_PASSWORD.sub(r"\1@", url).encode()).hexdigest()
    return name if name == url else f"{name} [{digest[:8]}]"


def _part(name: str) -> str:
    return f"url-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _state(position: dict[str, object]) -> State:
    return msgspec.convert(position, State)


def _recorded(state: State) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(state)
    return found
