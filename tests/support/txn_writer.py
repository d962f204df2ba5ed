"""A transactional writer in a process of its own: the package `pravega`, one transaction after the other.

The client keeps Python's lock while it waits for anything, so that in the process of the tests nothing else would run
as long as a service or a segment store is away. Each transaction is told on the output when its client has done with
it. A line on the input ends the process after the present transaction.
"""

import os
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path
from typing import Any, Self
from uuid import UUID

import msgspec
import pravega_client

from sluice_local import launch
from support.controller import Controller
from support.pravega import manager
from support.transactions import Transactions
from support.txn_events import Attempt, events_of, wanted_of

_FAILURES = (ValueError, pravega_client.TxnFailedException)
"""What the client raises."""


class TxnWriterProcess:
    """Writes transactions until it is told to stop; begins at once. As a context it is gone after."""

    def __init__(self, address: str, scope: str, stream: str, name: str) -> None:
        self.name = name
        self.attempts: list[Attempt] = []
        launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
        self._process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "support.txn_writer", address, scope, stream, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=str(Path(__file__).parents[1]),
        )
        self._reader = threading.Thread(target=self._read, name=f"txn-writer-{name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self.attempts.append(msgspec.json.decode(line, type=Attempt))

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Have it end after the present transaction."""
        if self.running:
            assert self._process.stdin is not None
            self._process.stdin.write("stop\n")
            self._process.stdin.flush()

    def finish(self, deadline_s: float) -> list[Attempt]:
        """Wait for the end; fail if there is none in time or if writing failed."""
        try:
            status = self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"{self.name}: {len(self.attempts)} transactions in {deadline_s} s, the last {self.attempts[-1:]}"
            ) from None
        self._reader.join(5)
        assert status == 0, f"{self.name}: {status} after {len(self.attempts)} transactions"
        return self.attempts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._reader.join(5)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


class _Writer:
    """One writer; belongs to one thread."""

    def __init__(self, address: str, scope: str, stream: str, name: str) -> None:
        # The client's threads end with its manager.
        self._streams = manager(address)
        self._writer = self._streams.create_transaction_writer(scope, stream, int.from_bytes(name.encode()))
        self._transactions = Transactions(Controller(address), scope, stream)
        self._name = name

    def write(self, number: int) -> "_Written":
        """Write the events of a transaction; as soon as it is ended, or another one, they are stored."""
        problems: list[str] = []
        while True:
            try:
                transaction = self._writer.begin_txn()
            except _FAILURES as error:
                problems.append(f"begin: {error}")
                continue
            written = _Written(number, transaction, wanted_of(number), problems)
            try:
                for event, key in events_of(self._name, number):
                    transaction.write_event(event, key)
            except _FAILURES as error:
                problems.append(f"write: {error}")
                written.wanted = "abort"
            return written

    def end(self, written: "_Written") -> Attempt:
        """Commit or abort it; one that cannot be committed is aborted."""
        id, problems = str(UUID(int=written.transaction.get_txn_id())), written.problems
        wanted, told = written.wanted, "SUCCESS"
        try:
            written.transaction.commit() if wanted == "commit" else written.transaction.abort()
        except _FAILURES as error:
            problems.append(f"{wanted}: {error}")
            # The client's object is of no more use, but somebody who has the id can ask again. What was not written
            # whole, or may not be, is not committed.
            wanted = "commit" if "TxnControllerError" in str(error) else "abort"
            told = self._end_again(id, wanted, problems)
        return Attempt(self._name, written.number, id, wanted, told, tuple(problems))

    def _end_again(self, id: str, wanted: str, problems: list[str]) -> str:
        while True:
            told = self._transactions.commit(id) if wanted == "commit" else self._transactions.abort(id)
            if told in ("SUCCESS", "FAILURE"):
                return told
            problems.append(f"{wanted} again: {told}")


class _Written(msgspec.Struct):
    """A transaction with its events."""

    number: int
    transaction: Any
    wanted: str
    problems: list[str]


def main() -> None:
    address, scope, stream, name = sys.argv[1:]
    writer = _Writer(address, scope, stream, name)
    stopped = threading.Event()

    def listen() -> None:
        if sys.stdin.readline():
            stopped.set()

    threading.Thread(target=listen, daemon=True).start()
    # One that is to be aborted is kept until the next one is committed: the client does not wait for its events.
    kept: list[_Written] = []
    for number in count():
        if stopped.is_set():
            break
        kept.append(writer.write(number))
        if kept[-1].wanted == "commit":
            tell(writer, kept)
    tell(writer, kept)


def tell(writer: _Writer, kept: list[_Written]) -> None:
    while kept:
        print(msgspec.json.encode(writer.end(kept.pop())).decode(), flush=True)


if __name__ == "__main__":
    main()
