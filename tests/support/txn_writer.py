"""A transactional writer in a process of its own: the package `pravega`, one transaction after the other.

The client keeps Python's lock while it waits for anything, so that in the process of the tests nothing else would run
as long as a service or a segment store is away. Each transaction is told on the output when its client has done with
it. A line on the input ends the process after the present transaction.
"""

import os
import subprocess
import sys
import threading
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
    """Writes `count` transactions, or until it is told to stop; begins at once. As a context it is gone after."""

    def __init__(self, address: str, scope: str, stream: str, name: str, count: int) -> None:
        self.name = name
        self.attempts: list[Attempt] = []
        launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
        self._process = subprocess.Popen(
            [*launcher, sys.executable, "-m", "support.txn_writer", address, scope, stream, name, str(count)],
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

    def write(self, number: int) -> Attempt:
        """One transaction to its end; one that cannot be written is aborted."""
        problems: list[str] = []
        while True:
            try:
                transaction = self._writer.begin_txn()
            except _FAILURES as error:
                problems.append(f"begin: {error}")
                continue
            id = str(UUID(int=transaction.get_txn_id()))
            wanted = wanted_of(number)
            try:
                for event, key in events_of(self._name, number):
                    transaction.write_event(event, key)
            except _FAILURES as error:
                problems.append(f"write: {error}")
                wanted = "abort"
            told = self._end(transaction, id, wanted, problems)
            return Attempt(self._name, number, id, *told, tuple(problems))

    def _end(self, transaction: Any, id: str, wanted: str, problems: list[str]) -> tuple[str, str]:
        """What was wanted in the end, and the answer."""
        try:
            transaction.commit() if wanted == "commit" else transaction.abort()
        except _FAILURES as error:
            problems.append(f"{wanted}: {error}")
            # The client's object is of no more use, but somebody who has the id can ask again. What was not written
            # whole, or may not be, is not committed.
            return self._end_again(id, "commit" if "TxnControllerError" in str(error) else "abort", problems)
        return wanted, "SUCCESS"

    def _end_again(self, id: str, wanted: str, problems: list[str]) -> tuple[str, str]:
        while True:
            told = self._transactions.commit(id) if wanted == "commit" else self._transactions.abort(id)
            if told in ("SUCCESS", "FAILURE"):
                return wanted, told
            problems.append(f"{wanted} again: {told}")


def main() -> None:
    address, scope, stream, name, count = sys.argv[1:]
    writer = _Writer(address, scope, stream, name)
    stopped = threading.Event()

    def listen() -> None:
        if sys.stdin.readline():
            stopped.set()

    threading.Thread(target=listen, daemon=True).start()
    for number in range(int(count)):
        if stopped.is_set():
            return
        print(msgspec.json.encode(writer.write(number)).decode(), flush=True)


if __name__ == "__main__":
    main()
