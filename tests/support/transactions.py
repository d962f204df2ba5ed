"""Transactions of one stream as a user of the gateway's gRPC interface has them, without any client library."""

import threading
import time
from typing import Any, Self

import grpc

from harness import eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.transaction_ids import halves, text_of
from support.controller import Controller, info
from support.wait import SOON_S

LEASE_MS = 10_000
"""The shortest lease that may be had."""


class Transactions:
    """The transactions of one stream. Ids are texts."""

    def __init__(self, gateway: Controller, scope: str, stream: str = "st") -> None:
        self.gateway = gateway
        self.scope, self.stream = scope, stream

    def open(self, lease_ms: int = LEASE_MS, deadline_s: float | None = None) -> str:
        """The id of a new one. Raises grpc.RpcError."""
        request = pb.CreateTxnRequest(streamInfo=info(self.scope, self.stream), lease=lease_ms)
        return id_of(self.gateway.call("createTransaction", request, deadline_s))

    def ping(self, id: str, lease_ms: int = LEASE_MS, deadline_s: float | None = None) -> str:
        request = pb.PingTxnRequest(streamInfo=info(self.scope, self.stream), txnId=_id(id), lease=lease_ms)
        return self.gateway.status("pingTransaction", request, deadline_s)

    def commit(self, id: str) -> str:
        return self.gateway.status("commitTransaction", self._request(id))

    def abort(self, id: str) -> str:
        return self.gateway.status("abortTransaction", self._request(id))

    def state(self, id: str) -> str:
        found = self.gateway.call("checkTransactionState", self._request(id))
        return str(pb.TxnState.State.Name(found.state))

    def await_state(self, id: str, state: str, deadline_s: float = 60.0) -> None:
        eventually(lambda: self.state(id) == state, deadline_s, f"{id} is {state}")

    def completed(self) -> dict[str, str]:
        """The last that ended, with COMMITTED or ABORTED."""
        request = pb.ListCompletedTxnRequest(streamInfo=info(self.scope, self.stream))
        return {
            id_of(each): pb.TxnResponse.Status.Name(each.status)
            for each in self.gateway.call("listCompletedTransactions", request).response
        }

    def _request(self, id: str) -> pb.TxnRequest:
        return pb.TxnRequest(streamInfo=info(self.scope, self.stream), txnId=_id(id))


def id_of(message: Any) -> str:
    """The id that a message holds."""
    return text_of(message.txnId.highBits, message.txnId.lowBits)


def _id(id: str) -> pb.TxnId:
    high, low = halves(id)
    return pb.TxnId(highBits=high, lowBits=low)


class Pinging(threading.Thread):
    """A client that opens a transaction and pings it at half of its lease, until `finish`.

    A ping that fails, or is not answered, is tried again soon, as clients do. As a context it goes on inside.
    """

    INTERVAL_S = LEASE_MS / 2000
    GIVES_UP_S = 2.0
    TRIES_AGAIN_S = 0.3
    NO_ANSWER = frozenset(code.name for code in grpc.StatusCode) - {"OK", *pb.PingTxnStatus.Status.keys()}

    def __init__(self, transactions: Transactions) -> None:
        super().__init__(name=f"pinging-{transactions.scope}", daemon=True)
        self.transactions = transactions
        self.id = transactions.open()
        self.answered = 0
        self.answers: set[str] = set()
        self.longest_s = 0.0
        self._done = threading.Event()

    def run(self) -> None:
        last_activity_at, wait = time.monotonic(), self.INTERVAL_S
        while not self._done.wait(wait):
            answer = self.transactions.ping(self.id, deadline_s=self.GIVES_UP_S)
            if answer in self.NO_ANSWER:
                wait = self.TRIES_AGAIN_S
                continue
            now = time.monotonic()
            self.longest_s, last_activity_at = max(self.longest_s, now - last_activity_at), now
            self.answers.add(answer)
            self.answered += 1
            wait = self.INTERVAL_S

    def finish(self) -> None:
        """Stop to ping."""
        self._done.set()
        self.join(SOON_S)
        assert not self.is_alive()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()
