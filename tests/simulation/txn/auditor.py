"""The auditor follows the journal as it grows and predicts the reply of each entry that counts.

It calls nothing of the product's: which entries count, replies and states are found out here. An entry is judged at the
state in front of it.
"""

from typing import Any

from simulation.counting import Counting
from simulation.txn.model import Model, Txn
from simulation.violation import Violation

from sluice.domain.decision import Reply
from sluice.domain.model import JournalEntry
from sluice.domain.transaction import commands as c
from sluice.domain.transaction import events as ev
from sluice.kafka.requests import Request, decode_request
from sluice.kafka.topics import COMMIT, DEAD_LETTERS, REQUESTS_TRANSACTIONS
from sluice.memory.broker import MemoryMessage

MIN_LEASE_MS, MAX_LEASE_MS = 10_000, 600_000
LONGEST_LIFE_MS = 24 * 3600 * 1000


class Ping:
    """A ping as it stands in the topic."""

    def __init__(self, request: str, at: int, lease_ms: int) -> None:
        self.request, self.at, self.lease_ms = request, at, lease_ms


class Auditor(Counting):
    """`requests` has what stands in the topics, by topic, partition and offset; `replies` those that count."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.requests: dict[tuple[str, int, int], Request] = {}
        self.commands: dict[str, Any] = {}
        self.replies: dict[str, Reply] = {}
        self.landed: dict[tuple[str, str], int] = {}
        self.pings: dict[str, list[Ping]] = {}

    def request(self, message: MemoryMessage) -> None:
        """A request is in a topic. Raises Violation."""
        topic = message.topic()
        if topic == DEAD_LETTERS.name:
            raise Violation(f"dead letter: {message.value()!r}, {message.headers()}")
        request = decode_request(message.value())
        command = request.command
        self.requests[topic, message.partition(), message.offset()] = request
        self.commands[request.id] = command
        at = message.timestamp()[1]
        if topic in (COMMIT.name, REQUESTS_TRANSACTIONS.name):
            self.landed[topic, request.id] = at
        if isinstance(command, c.PingTransaction):
            self.pings.setdefault(command.transaction, []).append(Ping(request.id, at, command.lease_ms))

    def command_of(self, partition: int, entry: JournalEntry) -> Any:
        """What the entry decides, or whose workflow it ends; None if nothing that was requested."""
        if entry.source is None:
            return self.commands.get(entry.request or "")
        request = self.requests[entry.source.topic.partition("@")[0], partition, entry.source.offset]
        if entry.request not in (None, request.id):
            raise Violation(f"{entry} says that it decides {request}")
        return request.command

    # Predicting.

    def apply(self, partition: int, entry: JournalEntry, at: int) -> None:
        command = self.command_of(partition, entry)
        if entry.reply is not None and entry.request is not None:
            # What a process decides for itself stands in no topic.
            if entry.request in self.replies and command is not None:
                raise Violation(f"{command} was replied twice: {self.replies[entry.request]}, then {entry.reply}")
            self.replies[entry.request] = entry.reply
        self._judge_cause(entry, command)
        for event in entry.events:
            self.model.apply(event, at)

    def _judge_cause(self, entry: JournalEntry, command: Any) -> None:
        """What is replied becomes true in the same entry, and nothing happens to a transaction without a request."""
        cause = None
        if entry.reply is not None and entry.request is not None and isinstance(command, _TRANSACTIONAL):
            cause = self._judge_reply(entry, command, entry.reply)
        elif isinstance(command, c.OpenTransaction) and entry.source is not None:
            opened = _opened_in(entry)
            # An entry that has no reply yet does not say whose request it decides, but the event does.
            cause = ev.TransactionOpened, entry.request or (opened and opened.request), command.lease_ms
        found = [_cause_of(event) for event in entry.events if isinstance(event, _CAUSED)]
        if found != ([cause] if cause is not None else []):
            raise Violation(f"{entry}: because of {command} there should be {cause}")

    def _judge_reply(self, entry: JournalEntry, command: Any, reply: Reply) -> Any:
        """What has to become true along with this reply; None if nothing."""
        cause: Any = None
        match command:
            case c.OpenTransaction() if reply.status == "OK" and (opened := _opened_in(entry)) is not None:
                # Its segments were there before: the rules of prepared transactions judge that.
                self._judge_segments(command, int(opened.transaction[:8], 16), reply)
                return ev.TransactionOpened, entry.request, command.lease_ms
            case c.OpenTransaction() if reply.status in ("OK", "ENDED"):
                self._judge_opened(entry, command, reply)
                return None
            case c.OpenTransaction():
                expected = self._open(command)
            case c.PingTransaction():
                expected, cause = self._ping(entry.request or "", command)
            case c.CommitTransaction():
                expected, cause = self._commit(command)
            case c.AbortTransaction():
                expected, cause = self._abort(command)
            case _:
                raise Violation(f"a reply to {command}")
        if reply.status != expected:
            found = self._find(command) if isinstance(command, c.TransactionCommand) else None
            state = found.state if found else "unknown"
            raise Violation(f"{command} was replied {reply.status}, expected is {expected}: it is {state}")
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
        dies_at = txn.opened_at + min(1000 * txn.first_lease_ms, LONGEST_LIFE_MS)
        if self.landed[(REQUESTS_TRANSACTIONS.name, request)] + command.lease_ms > dies_at:
            return "MAX_EXECUTION_TIME_EXCEEDED", None
        return "OK", (ev.TransactionPinged, command.transaction, command.lease_ms)

    def _commit(self, command: c.CommitTransaction) -> tuple[str, Any]:
        txn = self._find(command)
        if txn is None or txn.state in ("ABORTING", "ABORTED"):
            return "FAILURE", None
        if txn.state in ("COMMITTING", "COMMITTED"):
            return "SUCCESS", None
        return "SUCCESS", (ev.TransactionCommitting, command.transaction, command.writer)

    def _abort(self, command: c.AbortTransaction) -> tuple[str, Any]:
        if command.version is not None and command.version != self.versions.get(command.aggregate, 0):
            return "nothing: it was pinged since", None
        txn = self._find(command)
        if txn is None or txn.state in ("COMMITTING", "COMMITTED"):
            return "FAILURE", None
        if txn.state in ("ABORTING", "ABORTED"):
            return "SUCCESS", None
        return "SUCCESS", (ev.TransactionAborting, command.transaction, command.reason)

    def _judge_opened(self, entry: JournalEntry, command: c.OpenTransaction, reply: Reply) -> None:
        """The reply to who opened a transaction: its id and where to write, or that it was ended meanwhile."""
        if reply.status == "ENDED":
            return
        txn = self.model.txns.get((command.scope, command.stream, reply.transaction))
        if txn is None or txn.state != "OPEN":
            raise Violation(f"{command} was replied {reply}, the transaction is {txn.state if txn else 'unknown'}")
        becomes_ready = any(isinstance(e, ev.TransactionReady) and e.transaction == txn.id for e in entry.events)
        if becomes_ready == txn.ready:
            raise Violation(f"{reply}: the lease begins with the reply, once")
        if txn.request != entry.request:
            raise Violation(f"{txn.id} was opened by {txn.request}, but replied to {entry.request}")
        self._judge_segments(command, txn.epoch, reply)

    def _judge_segments(self, command: c.OpenTransaction, epoch: int, reply: Reply) -> None:
        stream = self.model.streams[command.scope, command.stream]
        wanted = [(epoch << 32) | (s.id & 0xFFFFFFFF) for s in stream.segments(epoch)]
        ranges = [(s.low, s.high) for s in stream.segments(epoch)]
        if [s.id for s in reply.segments] != wanted or [(s.low, s.high) for s in reply.segments] != ranges:
            raise Violation(f"{reply}: the segments of epoch {epoch} are {wanted}, {ranges}")


_TRANSACTIONAL = c.OpenTransaction | c.PingTransaction | c.CommitTransaction | c.AbortTransaction | c.CheckLease
_CAUSED = ev.TransactionOpened | ev.TransactionPinged | ev.TransactionCommitting | ev.TransactionAborting


def _cause_of(event: Any) -> tuple[Any, ...]:
    match event:
        case ev.TransactionOpened():
            return ev.TransactionOpened, event.request, event.lease_ms
        case ev.TransactionPinged():
            return ev.TransactionPinged, event.transaction, event.lease_ms
        case ev.TransactionCommitting():
            return ev.TransactionCommitting, event.transaction, event.writer
    return ev.TransactionAborting, event.transaction, event.reason


def _opened_in(entry: JournalEntry) -> ev.TransactionOpened | None:
    return next((event for event in entry.events if isinstance(event, ev.TransactionOpened)), None)
