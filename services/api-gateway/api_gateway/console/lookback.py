"""The past: jobs that a helper process does, so that this event loop never reads it.

The helper is started with the first job and ends when it had none for a while, and with the gateway. One that dies is
started anew by the next job; the callers of its jobs are answered with the reason. See `sluice.lookback.helper`.
Belongs to the event loop.
"""

import asyncio
import itertools
import logging
import os
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import msgspec
from starlette.requests import Request

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.shares import Shares
from sluice.child_process import ChildProcess
from sluice.lookback import errors, helper
from sluice.lookback.frames import LENGTH_BYTES, Cancel, Done, Failed, Submit, answer_of, frame, length_of
from sluice.lookback.jobs import MAX_JOB_S, Job

log = logging.getLogger(__name__)

MAX_WAITING = 20
SILENCE_S = MAX_JOB_S + 30
"""After so long without an answer a job hangs, for what it may take it ends by itself: so its process is ended."""

IDLE_S = 300.0
"""What the helper keeps is forgotten then, too."""

ENDS_S = 2.0

HELPER: Sequence[str] = (sys.executable, "-m", helper.__name__)

ArgumentsT = TypeVar("ArgumentsT", bound=msgspec.Struct)
ResultT = TypeVar("ResultT")
T = TypeVar("T")

_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        errors.LookbackError,
        errors.NotFoundError,
        errors.UnreachableError,
        errors.InvalidTextError,
        errors.TimeIsOverError,
    )
}


class Lookback(Protocol):
    """Does jobs about the past."""

    async def run(self, job: Job[ArgumentsT, ResultT], arguments: ArgumentsT) -> ResultT:
        """The job's result. Raises LookbackError, OverloadedError, QuotaExceededError, and JobDefectError."""
        ...


class _Child:
    """One helper process, and the jobs that it has."""

    def __init__(self, process: ChildProcess) -> None:
        self.process = process
        self.answers: dict[int, asyncio.Future[bytes]] = {}
        self.reading = asyncio.create_task(self._read(), name="lookback")

    @property
    def has_ended(self) -> bool:
        # The loop sees its output end at once; its status comes later, from a thread.
        return self.process.output.at_eof() or self.reading.done()

    async def _read(self) -> None:
        try:
            while True:
                prefix = await self.process.output.readexactly(LENGTH_BYTES)
                self._take(answer_of(await self.process.output.readexactly(length_of(prefix))))
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.MsgspecError) as error:
            if isinstance(error, msgspec.MsgspecError):
                log.error("the process that reads the past is not understood", extra={"error": str(error)})
                self.process.kill()
            status = await self.process.wait()
            for answer in self.answers.values():
                if not answer.done():
                    answer.set_exception(_ended(status))
            if status:
                log.error("the process that reads the past has ended", extra={"status": status})

    def _take(self, message: Done | Failed) -> None:
        answer = self.answers.get(message.id)
        if answer is None or answer.done():
            return
        if isinstance(message, Done):
            answer.set_result(message.result)
        else:
            answer.set_exception(_error(message))

    async def end(self) -> None:
        """It ends by itself once no more questions can come; if not, it is killed."""
        self.process.end_input()
        await self.process.ends(ENDS_S)
        await self.reading


def _ended(status: int) -> errors.HelperEndedError:
    return errors.HelperEndedError(
        f"the process that reads the past ended with status {status}; the next call starts another one"
    )


def _error(failed: Failed) -> Exception:
    kind = _ERRORS.get(failed.error)
    if kind is None:
        return errors.JobDefectError(failed.message)
    if issubclass(kind, errors.LookbackError):
        return kind(failed.message, failed.hint)
    return kind(failed.message)


class LookbackHelper:
    """See Lookback. `instance` is this one's name, `command` how the helper is started. Call `stop` at the end."""

    def __init__(self, instance: str, command: Sequence[str] = HELPER, idle_s: float = IDLE_S) -> None:
        self._command = command
        self._environment = {**os.environ, "SLUICE_INSTANCE": instance}
        self._idle_s = idle_s
        self._ids = itertools.count(1)
        self._shares = Shares(helper.JOBS_AT_ONCE + MAX_WAITING, "questions about the past")
        self._slots = asyncio.Semaphore(helper.JOBS_AT_ONCE)
        self._starting = asyncio.Lock()
        self._child: _Child | None = None
        self._jobs = 0
        self._stopped = False
        self._retiring: asyncio.TimerHandle | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, job: Job[ArgumentsT, ResultT], arguments: ArgumentsT) -> ResultT:
        """See Lookback."""
        with self._shares.taken():
            async with self._counted(), self._slots:
                result = await self._ask(job.name, msgspec.msgpack.encode(arguments))
        return msgspec.msgpack.decode(result, type=job.result)

    async def stop(self) -> None:
        """End the helper, and answer nothing more."""
        self._stopped = True
        async with self._starting:
            # One that was being started is there now.
            self._retire()
        await asyncio.gather(*self._ending)

    @asynccontextmanager
    async def _counted(self) -> AsyncIterator[None]:
        """While there are jobs, the helper stays."""
        self._jobs += 1
        if self._retiring is not None:
            self._retiring.cancel()
            self._retiring = None
        try:
            yield
        finally:
            self._jobs -= 1
            if not self._jobs and not self._stopped:
                self._retiring = asyncio.get_running_loop().call_later(self._idle_s, self._retire)

    async def _ask(self, name: str, arguments: bytes) -> bytes:
        child = await self._present()
        id = next(self._ids)
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        child.answers[id] = answer
        try:
            child.process.write(frame(Submit(id, name, arguments)))
            async with asyncio.timeout(SILENCE_S):
                return await answer
        except TimeoutError:
            child.process.kill()
            raise errors.HelperEndedError(
                f"the process that reads the past did not answer within {SILENCE_S:g} s and was ended"
            ) from None
        except asyncio.CancelledError:
            if not child.has_ended:
                child.process.write(frame(Cancel(id)))
            raise
        finally:
            del child.answers[id]

    async def _present(self) -> _Child:
        async with self._starting:
            if self._stopped:
                raise errors.HelperEndedError("this gateway is stopping")
            if self._child is None or self._child.has_ended:
                self._child = await self._start()
            return self._child

    async def _start(self) -> _Child:
        try:
            process = await ChildProcess.start(self._command, self._environment)
        except OSError as error:
            raise errors.HelperEndedError(f"the process that reads the past cannot be started: {error}") from error
        log.info("reading the past", extra={"pid": process.pid})
        return _Child(process)

    def _retire(self) -> None:
        """End the helper that there is; the next job starts another one."""
        child, self._child, self._retiring = self._child, None, None
        if child is not None:
            task = asyncio.get_running_loop().create_task(child.end())
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)


async def while_caller_waits(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work comes to; it is cancelled when the caller leaves. Raises as it does, and BadRequestError then."""
    doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise BadRequestError("the caller left before the answer was there")
        return doing.result()
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
