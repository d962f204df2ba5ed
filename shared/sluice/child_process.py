"""Other programs that a service starts, by `subprocess` and not by its event loop.

uvloop forks. What Python does in the copy, before the program begins there, destroys what other threads held; a Kafka
client that is destroyed there waits for threads that the copy does not have, and the event loop here waits for the
copy, for a second. `subprocess` has nothing of Python run in the copy (vfork).
"""

import asyncio
import contextlib
import subprocess
import threading
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL, PIPE
from typing import IO, Self


class ChildProcess:
    """A program, what is said to it, and its `output`. Belongs to the event loop. Made by `start`."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None, says_errors: bool) -> None:
        stdout, stderr = (DEVNULL, PIPE) if says_errors else (PIPE, None)
        # Without buffers of its own: the event loop reads and writes.
        self._popen = subprocess.Popen(command, 0, stdin=PIPE, stdout=stdout, stderr=stderr, env=environment)
        self.pid = self._popen.pid
        self.output = asyncio.StreamReader()
        self._input: asyncio.WriteTransport | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        threading.Thread(target=self._wait, name=f"child-{self.pid}", daemon=True).start()

    @classmethod
    async def start(
        cls, command: Sequence[str], environment: Mapping[str, str] | None = None, *, says_errors: bool = False
    ) -> Self:
        """`output` has its standard output; with `says_errors` its standard error, and the former is dropped.

        Raises OSError. Cancelled, it has ended the program.
        """
        child = cls(command, environment, says_errors)
        try:
            await child._connect()
        except BaseException:
            child.kill()
            await child.wait()
            raise
        return child

    async def _connect(self) -> None:
        said: IO[bytes] | None = self._popen.stdout or self._popen.stderr
        await self._loop.connect_read_pipe(lambda: _UntilItsEnd(self.output), said)
        self._input, _ = await self._loop.connect_write_pipe(asyncio.BaseProtocol, self._popen.stdin)

    @property
    def returncode(self) -> int | None:
        """None while it runs, negative if a signal ended it."""
        return self._ended.result() if self._ended.done() else None

    def write(self, data: bytes) -> None:
        """To its standard input. What comes when that has ended is dropped."""
        if self._input is not None and not self._input.is_closing():
            self._input.write(data)

    def end_input(self) -> None:
        """Nothing more will be written to it."""
        if self._input is not None:
            self._input.close()

    async def wait(self) -> int:
        """Its status, once it has ended."""
        return await asyncio.shield(self._ended)

    async def ends(self, within_s: float) -> int:
        """Its status; it is killed if it has not ended by then."""
        # In Python 3.11 `wait_for` may lose a cancellation, and `timeout` ends with one that came before.
        await asyncio.wait({self._ended}, timeout=within_s)
        self.kill()
        return await self.wait()

    def terminate(self) -> None:
        """Request its end, if it runs."""
        self._popen.terminate()

    def kill(self) -> None:
        """End it, if it runs."""
        self._popen.kill()

    def _wait(self) -> None:
        status = self._popen.wait()
        # The loop may be gone: then nobody waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended.set_result, status)


class _UntilItsEnd(asyncio.StreamReaderProtocol):
    """Closes this end when the program has closed its own."""

    def eof_received(self) -> bool:
        super().eof_received()
        return False
