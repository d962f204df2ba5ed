"""A transactional writer in a process of its own: the package `pravega`, one transaction after the other."""

import sys
import threading
from itertools import count
from typing import Any, TextIO
from uuid import UUID

import msgspec
import pravega_client

from support.controller import Controller
from support.pravega import manager
from support.transactions import Transactions
from support.txn_events import Attempt, events_of, wanted_of
from support.writing_process import WritingProcess, on_stop, own_output, program

_FAILURES = (ValueError, pravega_client.TxnFailedException)
"""What the client raises."""


class TxnWriterProcess(WritingProcess):
    """Writes transactions until it is stopped; it prints each that its client has done with."""

    def __init__(self, address: str, scope: str, stream: str, name: str) -> None:
        self.attempts: list[Attempt] = []
        super().__init__(name, program("txn_writer", address, scope, stream, name))

    def receive(self, line: str) -> None:
        self.attempts.append(msgspec.json.decode(line, type=Attempt))

    def progress(self) -> str:
        return f"{len(self.attempts)} transactions, the last {self.attempts[-1:]}"


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
        wanted, reply = written.wanted, "SUCCESS"
        try:
            written.transaction.commit() if wanted == "commit" else written.transaction.abort()
        except _FAILURES as error:
            problems.append(f"{wanted}: {error}")
            # The client's object is of no more use, but the id is enough to ask again. What was not written
            # whole, or may not be, is not committed.
            wanted = "commit" if "TxnControllerError" in str(error) else "abort"
            reply = self._end_again(id, wanted, problems)
        return Attempt(self._name, written.number, id, wanted, reply, tuple(problems))

    def _end_again(self, id: str, wanted: str, problems: list[str]) -> str:
        while True:
            reply = self._transactions.commit(id) if wanted == "commit" else self._transactions.abort(id)
            if reply in ("SUCCESS", "FAILURE"):
                return reply
            problems.append(f"{wanted} again: {reply}")


class _Written(msgspec.Struct):
    """A transaction with its events."""

    number: int
    transaction: Any
    wanted: str
    problems: list[str]


def main() -> None:
    address, scope, stream, name = sys.argv[1:]
    output = own_output()
    writer = _Writer(address, scope, stream, name)
    stopped = threading.Event()
    on_stop(stopped.set)
    # One that is to be aborted is kept until the next one is committed: the client does not wait for its events.
    kept: list[_Written] = []
    for number in count():
        if stopped.is_set():
            break
        kept.append(writer.write(number))
        if kept[-1].wanted == "commit":
            tell(writer, kept, output)
    tell(writer, kept, output)


def tell(writer: _Writer, kept: list[_Written], output: TextIO) -> None:
    while kept:
        print(msgspec.json.encode(writer.end(kept.pop())).decode(), file=output, flush=True)


if __name__ == "__main__":
    main()
