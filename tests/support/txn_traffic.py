"""Transactional writers on one stream while a test does things to it; in the end all is as the replies said."""

import asyncio
from collections import Counter
from typing import Self

from harness import eventually
from support.controller import Controller, unique
from support.pravega import manager, read_from_the_start
from support.scaling import scale_to
from support.transactions import Transactions
from support.txn_events import Attempt, check_exactly_once, expected_events
from support.txn_writer import TxnWriterProcess

SEGMENTS = 4
GOES_ON_S = 60.0


class TxnTraffic:
    """So many writers on a stream of a new scope, until `ends_exactly_once`. As a context they are gone after.

    What was written is read by way of `reads_at`, which must be no thread of this process: the client that reads keeps
    Python's lock while it waits.
    """

    def __init__(self, gateway: Controller, address: str, writers: int, reads_at: str = "") -> None:
        self.gateway = gateway
        self.scope, self.stream = unique("txns"), "st"
        self.transactions = Transactions(gateway, self.scope, self.stream)
        assert gateway.create_scope(self.scope) == "SUCCESS"
        assert gateway.create_stream(self.scope, self.stream, SEGMENTS) == "SUCCESS"
        self._reads_at = reads_at or address
        self._scales = 0
        self.writers = [TxnWriterProcess(address, self.scope, self.stream, f"w{number}") for number in range(writers)]

    @property
    def attempts(self) -> list[Attempt]:
        """The transactions that their clients have done with so far."""
        return [attempt for writer in self.writers for attempt in list(writer.attempts)]

    @property
    def running(self) -> bool:
        return any(writer.running for writer in self.writers)

    def goes_on(self, more: int = 8) -> None:
        """So many more transactions are done with."""
        before = len(self.attempts)
        assert self.running, f"all writers have failed after {before} transactions"
        eventually(lambda: len(self.attempts) >= before + more, GOES_ON_S, f"more transactions than {before}")

    def scale(self) -> None:
        """Replace all segments."""
        self._scales += 1
        scale_to(self.gateway, self.scope, self.stream, SEGMENTS + self._scales % 2, GOES_ON_S)

    async def ends_exactly_once(self, deadline_s: float = GOES_ON_S) -> Counter[str]:
        """The writers end what they are at; then all that was committed is read once, in order, and nothing else.

        Returns how many transactions ended how.
        """
        for writer in self.writers:
            writer.stop()
        for writer in self.writers:
            await asyncio.to_thread(writer.wait, deadline_s)
        attempts = self.attempts
        for attempt in attempts:
            if attempt.problems:
                print(f"{attempt.writer}:{attempt.number} {attempt.wanted} {attempt.reply}: {attempt.problems}")
        expected = await asyncio.to_thread(expected_events, attempts, self.transactions, deadline_s)
        streams = manager(self._reads_at)
        events = await read_from_the_start(streams, self.scope, self.stream, len(expected), deadline_s)
        check_exactly_once(events, expected)
        return Counter(attempt.wanted for attempt in attempts)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self.writers:
            writer.close()
