"""The node's side of the process that writes: starts it when there is something to write, and anew after it failed.

An answer that does not come in time ends the process, whether a caller still waits for it or not: then nothing of what
it was given is written later than that.

Concurrency: belongs to one event loop. Batches are sent one after the other and answered in that order.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections import deque
from collections.abc import Sequence

import msgspec

from distributed_ingest.frames import LENGTH, Answer, Batch, frame
from distributed_ingest.records import Event
from distributed_ingest.sink import SinkError

ANSWER_S = 30.0
_ENDS_S = 5.0
_SAID_BYTES = 4096


class StreamSink:
    """See Sink. `controller` is a URL, `tcp://host:port`."""

    def __init__(self, controller: str, scope: str, stream: str, answer_s: float = ANSWER_S) -> None:
        self._target = (controller, scope, stream)
        self.answer_s = answer_s
        self._writer: _Writer | None = None
        self._turn = asyncio.Lock()

    async def write(self, events: Sequence[Event], usable_s: float) -> None:
        """See Sink."""
        until_s = time.clock_gettime(time.CLOCK_BOOTTIME) + usable_s
        batch = Batch(until_s, [(event.data, event.key) for event in events])
        try:
            async with asyncio.timeout(self.answer_s):
                async with self._turn:
                    answer = await (await self._running()).send(batch, self.answer_s)
        except TimeoutError as error:
            # Whatever is in the way was sent before, and has a deadline of its own.
            raise SinkError(_silent(self.answer_s)) from error
        except OSError as error:
            raise SinkError(f"the process that writes cannot be started: {error}") from error
        # Shielded: the answer belongs to a position in the row, whether a caller waits for it or not.
        await asyncio.shield(answer)

    async def close(self) -> None:
        """See Sink. What was handed over is finished before."""
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.end(kill=writer.ended)

    async def _running(self) -> "_Writer":
        if self._writer is None or self._writer.ended:
            await self.close()
            self._writer = await _Writer.start(*self._target)
        return self._writer


class _Writer:
    """One life of the process."""

    def __init__(self, process: asyncio.subprocess.Process, hint: str) -> None:
        self.ended = False
        self._hint = hint
        self._process = process
        self._unanswered: deque[asyncio.Future[None]] = deque()
        self._said = b""
        self._silent = ""
        self._reading = asyncio.create_task(self._read(), name="answers of the writer")
        self._collecting = asyncio.create_task(self._collect_output(), name="output of the writer")

    @classmethod
    async def start(cls, controller: str, scope: str, stream: str) -> "_Writer":
        arguments = ("-m", "distributed_ingest.writer_process", str(os.getpid()), controller, scope, stream)
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            # Away from the terminal's group: Ctrl-C is for the node.
            sys.executable, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
        )  # fmt: skip
        return cls(process, f"(is the stream sealed or gone? `sluice stream show {scope}/{stream}`)")

    async def send(self, batch: Batch, answer_s: float) -> "asyncio.Future[None]":
        """Hand a batch over; return its answer, which comes within that time or fails, and then this process ends."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[None] = loop.create_future()
        # A cancelled caller does not look at how it ended.
        answer.add_done_callback(_seen)
        deadline = loop.call_later(answer_s, self._expire, answer, answer_s)
        answer.add_done_callback(lambda _: deadline.cancel())
        self._unanswered.append(answer)
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):  # the end of the process says more, and comes through `_read`
            self._process.stdin.write(frame(batch))
            await self._process.stdin.drain()
        if self.ended:
            self._fail()
        return answer

    async def end(self, *, kill: bool) -> None:
        """End the process; without `kill` when it has written what it was given."""
        self.ended = True
        assert self._process.stdin is not None
        self._process.stdin.close()
        if not kill:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_ENDS_S):
                    await self._process.wait()
        self._kill()
        await self._process.wait()
        await asyncio.wait((self._reading, self._collecting))

    def _expire(self, answer: "asyncio.Future[None]", answer_s: float) -> None:
        if not answer.done():
            self._silent = _silent(answer_s)
            answer.set_exception(SinkError(self._silent))
            self._kill()

    def _kill(self) -> None:
        self.ended = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                (length,) = LENGTH.unpack(await self._process.stdout.readexactly(LENGTH.size))
                answer = msgspec.msgpack.decode(await self._process.stdout.readexactly(length), type=Answer)
                self.ended = self.ended or answer.last
                future = self._unanswered.popleft()
                if future.done():
                    continue
                if answer.error is None:
                    future.set_result(None)
                else:
                    future.set_exception(SinkError(f"{answer.error} {self._hint}"))
        except asyncio.IncompleteReadError:
            await asyncio.wait((self._collecting,))
            self.ended = True
            self._fail()

    async def _collect_output(self) -> None:
        assert self._process.stderr is not None
        while said := await self._process.stderr.read(_SAID_BYTES):
            self._said = (self._said + said)[-_SAID_BYTES:]

    def _fail(self) -> None:
        lines = self._said.decode(errors="replace").split("\n")
        last = self._silent or next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
        while self._unanswered:
            future = self._unanswered.popleft()
            if not future.done():
                future.set_exception(SinkError(f"the process that writes has ended: {last}"))


def _silent(answer_s: float) -> str:
    return f"the stream has not answered for {answer_s:g} s"


def _seen(future: "asyncio.Future[None]") -> None:
    if not future.cancelled():
        future.exception()
