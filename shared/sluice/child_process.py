"""Other programs that a service starts, by `subprocess` and not by its event loop.

uvloop forks. What Python does in the copy, before the program begins there, destroys what other threads held; a Kafka
client that is destroyed there waits for threads that the copy does not have, and the event loop here waits for the
copy: for a second, or for ever. `subprocess` has nothing of Python run in the copy (vfork).
"""

import asyncio
import contextlib
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from subprocess import DEVNULL
from typing import Self


class ChildProcess:
    """A program and what it says, mostly as `asyncio.subprocess.Process`. Belongs to the event loop.

    A socket is its standard input and its standard output, or error. It takes this end's closing for the end of input.
    """

    def __init__(
        self, popen: "subprocess.Popen[bytes]", output: asyncio.StreamReader, input_: asyncio.StreamWriter
    ) -> None:
        self._popen = popen
        self.pid = popen.pid
        self.output = output
        self.input = input_
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        threading.Thread(target=self._wait, name=f"child-{self.pid}", daemon=True).start()

    @classmethod
    async def start(
        cls, command: Sequence[str], environment: Mapping[str, str] | None = None, *, says_errors: bool = False
    ) -> Self:
        """`output` has its standard output; with `says_errors` its standard error, and the former is dropped.

        Raises OSError.
        """
        popen, ours = _begun(command, environment, says_errors)
        output = asyncio.StreamReader()
        protocol = _UntilItsEnd(output)
        loop = asyncio.get_running_loop()
        try:
            transport, _ = await loop.create_connection(lambda: protocol, sock=ours)
        except BaseException:
            popen.kill()
            raise
        return cls(popen, output, asyncio.StreamWriter(transport, protocol, output, loop))

    @property
    def returncode(self) -> int | None:
        """None while it runs, negative if a signal ended it."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """Its status, once it has ended."""
        return await asyncio.shield(self._ended)

    def end_input(self) -> None:
        """Nothing more will be written to it."""
        if not self.input.is_closing():
            self.input.write_eof()

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


def _begun(
    command: Sequence[str], environment: Mapping[str, str] | None, says_errors: bool
) -> tuple["subprocess.Popen[bytes]", socket.socket]:
    """The program, and this end of its socket."""
    ours, theirs = socket.socketpair()
    with theirs:
        end = theirs.fileno()
        stdout, stderr = (DEVNULL, end) if says_errors else (end, None)
        try:
            return subprocess.Popen(command, stdin=end, stdout=stdout, stderr=stderr, env=environment), ours
        except OSError:
            ours.close()
            raise


class _UntilItsEnd(asyncio.StreamReaderProtocol):
    """Closes this end when the program has closed its own."""

    def eof_received(self) -> bool:
        super().eof_received()
        return False
