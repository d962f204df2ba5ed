"""The auditor follows the journal as it grows, decides by itself which records count, and predicts their answers.

It calls nothing of the product's: versions, answers and states are counted here. An answer is judged at the state in
front of its record, for what one record decides together never reads what it changes.
"""

from collections.abc import Callable
from typing import Any

from simulation.txn.broker import Message
from simulation.txn.model import Model, Txn, Violation

from sluice.domain import commands as c
from sluice.domain import events as ev
from sluice.domain.decision import Reply
from sluice.journal.record import Record
from sluice.messaging.requests import decode_request
from sluice.messaging.topics import COMMIT, DEAD_LETTERS, REQUESTS_TRANSACTIONS

MIN_LEASE_MS, MAX_LEASE_MS = 10_000, 600_000
LONGEST_LIFE_MS = 24 * 3600 * 1000

Answered = Callable[[str, Reply], None]
Counted = Callable[[Record, int], None]


class Ping:
    """A ping as it stands in the topic."""

    def __init__(self, request: str, at: int, lease_ms: int) -> None:
        self.request, self.at, self.lease_ms = request, at, lease_ms


class Auditor:
    """`on_answer` gets each answer that counts; `before` and `after` are called around each record that counts."""

    def __init__(self, on_answer: Answered) -> None:
        self.model = Model()
        self.commands: dict[str, Any] = {}
        self.answers: dict[str, Reply] = {}
        self.landed: dict[tuple[str, str], int] = {}
        self.pings: dict[str, list[Ping]] = {}
        self.opened_by: dict[str, str] = {}
        self.versions: dict[str, int] = {}
        self.void = 0
        self.counted = 0
        self.before: list[Counted] = []
        self.after: list[Counted] = []
        self._on_answer = on_answer
        self._remembered: set[str] = set()

    def request(self, message: Message) -> None:
        """A request is in a topic. Raises Violation."""
        topic = message.topic()
        if topic == DEAD_LETTERS.name:
            raise Violation(f"dead letter: {message.value()!r}")
        request = decode_request(message.value())
        command = request.command
        self.commands[request.id] = command
        at = message.timestamp()[1]
        if topic in (COMMIT.name, REQUESTS_TRANSACTIONS.name):
            self.landed[(topic, request.id)] = at
        if isinstance(command, c.PingTransaction):
            self.pings.setdefault(command.transaction, []).append(Ping(request.id, at, command.lease_ms))

    def record(self, record: Record, at: int) -> None:
        """A record is in the journal. Raises Violation."""
        if not self._counts(record):
            self.void += 1
            return
        self.counted += 1
        for listener in self.before:
            listener(record, at)
        self._judge(record)
        touched = set()
        for event in record.events:
            touched.add(event.aggregate)
            self.model.apply(event, at)
        for name in touched:
            self.versions[name] = self.versions.get(name, 0) + 1
        for listener in self.after:
            listener(record, at)
        for request, answer in record.answers.items():
            self._told(request, answer)
        if record.request is not None and record.reply is not None:
            self._remembered.add(record.request)
            self._told(record.request, record.reply)

    def _counts(self, record: Record) -> bool:
        if record.request is not None and record.request in self._remembered:
            return False
        return all(self.versions.get(name, 0) == version for name, version in record.expect.items())

    def _told(self, request: str, answer: Reply) -> None:
        self.answers.setdefault(request, answer)
        self._on_answer(request, answer)

    # Predicting.

    def _judge(self, record: Record) -> None:
        causes: list[Any] = []
        for request, answer in record.answers.items():
            causes.append(self._judge_answer(request, answer, record))
        for event in record.events:
            self._judge_event(record, event, causes)
        left = [cause for cause in causes if cause is not None]
        if left:
            raise Violation(f"answered, but nothing of it became true: {left}")

    def _judge_answer(self, request: str, answer: Reply, record: Record) -> Any:
        """What has to become true along with this answer; None if nothing."""
        command = self.commands.get(request)
        match command:
            case c.OpenTransaction() if answer.status in ("OK", "ENDED"):
                self._judge_opened(request, command, answer, record)
                return None
            case c.OpenTransaction():
                expected, cause = self._open(command), None
            case c.PingTransaction():
                expected, cause = self._ping(request, command)
            case c.CommitTransaction():
                expected, cause = self._commit(command)
            case c.AbortTransaction():
                expected, cause = self._abort(command)
            case _:
                raise Violation(f"an answer to {command}")
        if answer.status != expected:
            found = self._find(command) if isinstance(command, c.TransactionCommand) else None
            state = found.state if found else "unknown"
            raise Violation(f"{command} was answered {answer.status}, expected is {expected}: it is {state}")
        return cause

    def _find(self, command: c.TransactionCommand) -> Txn | None:
        return self.model.txns.get((command.scope, command.stream, command.transaction))

    def _open(self, command: c.OpenTransaction) -> str:
        """Only refusals are answered with the decision."""
        stream = self.model.streams.get((command.scope, command.stream))
        if stream is None or stream.state == "CREATING":
            return "STREAM_NOT_FOUND"
        if not MIN_LEASE_MS <= command.lease_ms <= MAX_LEASE_MS:
            return "LEASE_OUT_OF_BOUNDS"
        if stream.state in ("SEALING", "SEALED"):
            return "STREAM_SEALED"
        return "nothing before its segments exist"

    def _ping(self, request: str, command: c.PingTransaction) -> tuple[str, Any]:
        txn = self._find(command)
        if txn is None:
            return "UNKNOWN", None
        if txn.state in ("COMMITTING", "COMMITTED"):
            return "COMMITTED", None
        if txn.state in ("ABORTING", "ABORTED"):
            return "ABORTED", None
        if command.lease_ms > MAX_LEASE_MS:
            return "LEASE_TOO_LARGE", None
        dies_at = txn.opened_at + min(1000 * self._first_lease(txn), LONGEST_LIFE_MS)
        if self.landed[(REQUESTS_TRANSACTIONS.name, request)] + command.lease_ms > dies_at:
            return "MAX_EXECUTION_TIME_EXCEEDED", None
        return "OK", (ev.TransactionPinged, command.transaction, command.lease_ms)

    def _first_lease(self, txn: Txn) -> int:
        opened = self.commands.get(self.opened_by.get(txn.id, ""))
        return opened.lease_ms if opened is not None else txn.lease_ms

    def _commit(self, command: c.CommitTransaction) -> tuple[str, Any]:
        txn = self._find(command)
        if txn is None or txn.state in ("ABORTING", "ABORTED"):
            return "FAILURE", None
        if txn.state in ("COMMITTING", "COMMITTED"):
            return "SUCCESS", None
        return "SUCCESS", (ev.TransactionCommitting, command.transaction, command.writer)

    def _abort(self, command: c.AbortTransaction) -> tuple[str, Any]:
        if command.version is not None and command.version != self.versions.get(command.aggregate, 0):
            return "nothing: something was heard of it since", None
        txn = self._find(command)
        if txn is None or txn.state in ("COMMITTING", "COMMITTED"):
            return "FAILURE", None
        if txn.state in ("ABORTING", "ABORTED"):
            return "SUCCESS", None
        return "SUCCESS", (ev.TransactionAborting, command.transaction, command.reason)

    def _judge_event(self, record: Record, event: Any, causes: list[Any]) -> None:
        """Nothing happens to a transaction without a request that is answered in the same record."""
        match event:
            case ev.TransactionPinged():
                cause: Any = (ev.TransactionPinged, event.transaction, event.lease_ms)
            case ev.TransactionCommitting():
                cause = (ev.TransactionCommitting, event.transaction, event.writer)
            case ev.TransactionAborting():
                cause = (ev.TransactionAborting, event.transaction, event.reason)
            case _:
                return
        if cause not in causes:
            raise Violation(f"{event} without a request in {record.id} by {record.by}")
        causes[causes.index(cause)] = None

    def _judge_opened(self, request: str, command: c.OpenTransaction, answer: Reply, record: Record) -> None:
        """The answer to who opened a transaction: its id and where to write, or that it was ended meanwhile."""
        if answer.status == "ENDED":
            return
        txn = self.model.txns.get((command.scope, command.stream, answer.transaction))
        if txn is None or txn.state != "OPEN":
            raise Violation(f"{command} was answered {answer}, the transaction is {txn.state if txn else 'unknown'}")
        ready = any(isinstance(e, ev.TransactionReady) and e.transaction == txn.id for e in record.events)
        if ready == txn.ready:
            raise Violation(f"{answer}: the lease begins with the answer, once")
        if self.opened_by.setdefault(txn.id, request) != request:
            raise Violation(f"{txn.id} was opened by {self.opened_by[txn.id]}, but answered to {request}")
        stream = self.model.streams[(command.scope, command.stream)]
        wanted = [(txn.epoch << 32) | (s.id & 0xFFFFFFFF) for s in stream.segments(txn.epoch)]
        ranges = [(s.low, s.high) for s in stream.segments(txn.epoch)]
        if [s.id for s in answer.segments] != wanted or [(s.low, s.high) for s in answer.segments] != ranges:
            raise Violation(f"{answer}: the segments of epoch {txn.epoch} are {wanted}, {ranges}")
