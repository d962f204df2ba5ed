"""The events of transactional writers: what they write, what must be read of it, and in which order.

A transaction holds events, `writer:transaction:event`, whose routing keys are shared by all writers: none, one, so many
that each segment has some, or a few. Every fifth is aborted.
"""

from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import msgspec

from support.transactions import Transactions

KEYS = 8
ABORTED_EVERY = 5
_COUNTS = (3, 0, 1, 5, 2 * KEYS, 4, 6)

_ENDS = {
    ("commit", "SUCCESS"): "COMMITTED",
    ("abort", "SUCCESS"): "ABORTED",
    # Its commit was accepted before, unknown to the client.
    ("abort", "FAILURE"): "COMMITTED",
}
_ASK_CONCURRENCY = 16


class Attempt(msgspec.Struct, frozen=True):
    """A transaction that its client has done with: what the client wanted, the reply, what went wrong before."""

    writer: str
    number: int
    id: str
    wanted: str
    reply: str
    problems: tuple[str, ...] = ()


def events_of(writer: str, number: int) -> list[tuple[str, str]]:
    """The events of a transaction, each with its routing key; pairs share a key."""
    return [(f"{writer}:{number}:{index}", _key(number, index)) for index in range(_COUNTS[number % len(_COUNTS)])]


def wanted_of(number: int) -> str:
    return "abort" if number % ABORTED_EVERY == 1 else "commit"


def _key(number: int, index: int) -> str:
    return f"key-{(number + index // 2) % KEYS}"


def expected_events(attempts: Iterable[Attempt], transactions: Transactions, deadline_s: float) -> list[str]:
    """The events of the transactions that are committed; each must end as its reply said."""

    def written(attempt: Attempt) -> list[str]:
        goal = _ENDS.get((attempt.wanted, attempt.reply))
        assert goal is not None, attempt
        transactions.await_state(attempt.id, goal, deadline_s)
        return [event for event, _ in events_of(attempt.writer, attempt.number)] if goal == "COMMITTED" else []

    with ThreadPoolExecutor(_ASK_CONCURRENCY) as pool:
        return [event for events in pool.map(written, attempts) for event in events]


def check_exactly_once(read: list[str], expected: list[str]) -> None:
    """All that was committed once, in order; along a key the events of a transaction stand together."""
    missing, foreign = set(expected) - set(read), set(read) - set(expected)
    doubled = len(read) - len(set(read))
    assert not missing and not foreign and not doubled, (
        f"{len(missing)} missing {sorted(missing)[:5]}, {len(foreign)} not committed {sorted(foreign)[:5]}, "
        f"{doubled} doubled"
    )
    along: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
    for event in read:
        writer, *numbers = event.split(":")
        number, index = map(int, numbers)
        along[_key(number, index)].append((writer, number, index))
    for key, events in along.items():
        of_writer: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for writer, number, index in events:
            of_writer[writer].append((number, index))
        for writer, order in of_writer.items():
            assert order == sorted(order), f"{writer} out of order along {key}"
        runs = [transaction for transaction, _ in groupby(events, key=lambda event: event[:2])]
        assert len(runs) == len(set(runs)), f"transactions are mixed along {key}"
