"""Invariants of prepared transactions: no id is given twice, none is opened without its segments, none is left over.

Follows the journal by itself; ids and names are derived here.
"""

from dataclasses import dataclass
from typing import Any

from simulation.txn.plant import Plant
from simulation.violation import Violation

from sluice.domain.model import JournalEntry
from sluice.domain.stream.events import StreamDeleted
from sluice.domain.transaction import events as ev


@dataclass(eq=False)
class Prepared:
    """One id with the names of its segments; `state` is reserved, prepared, opened, discarded or deleted."""

    id: str
    names: tuple[str, ...]
    state: str = "reserved"


class PreparedRules:
    """`opened` counts the transactions that were prepared when they were opened."""

    def __init__(self, plant: Plant) -> None:
        self.opened = 0
        self._plant = plant
        self._all: dict[str, Prepared] = {}
        self._ranges: dict[str, list[Prepared]] = {}
        plant.auditor.after.append(self._judge)

    def left_over(self) -> str | None:
        """A range that is not through, or a segment of an id that was ever reserved: once all is at rest, none is."""
        for first, ids in self._ranges.items():
            live = [prepared.id for prepared in ids if prepared.state in ("reserved", "prepared", "discarded")]
            if live:
                return f"the range {first} still has {live}"
        stored = self._plant.stores.segments
        for prepared in self._all.values():
            for name in prepared.names:
                if name in stored:
                    return f"{name} is left over, it was reserved and is {prepared.state}"
        return None

    def _judge(self, _partition: int, entry: JournalEntry, _at: int) -> None:
        for event in entry.events:
            match event:
                case ev.TransactionRangeReserved():
                    self._reserved(event)
                case ev.TransactionPrepared():
                    self._move(event, event.transaction, "reserved", "prepared")
                    self._must_be_stored(self._all[event.transaction])
                case ev.TransactionDiscarded():
                    # The event of its range stands before it, and says so, too.
                    self._move(event, event.transaction, "discarded", "discarded")
                case ev.TransactionRangeDiscarded():
                    self._discarded(event)
                case ev.TransactionRangeDeleted():
                    for prepared in self._ranges[event.first]:
                        if prepared.state == "discarded":
                            prepared.state = "deleted"
                case ev.TransactionOpened() if event.prepared or event.transaction in self._all:
                    self._move(event, event.transaction, "prepared", "opened")
                    self._must_be_stored(self._all[event.transaction])
                    self.opened += 1
                case StreamDeleted():
                    self._stream_deleted(event)

    def _reserved(self, event: ev.TransactionRangeReserved) -> None:
        stream = self._plant.auditor.model.streams.get((event.scope, event.stream))
        if stream is None or stream.state != "ACTIVE" or int(event.first[:8], 16) != stream.reference:
            raise Violation(f"{event}: the stream is {stream}")
        ids = []
        for number in range(event.count):
            low = int(event.first[-12:], 16) + number
            id = f"{event.first[:-12]}{low:012x}"
            if id in self._all:
                raise Violation(f"{event}: {id} was reserved before")
            digits = id.replace("-", "")
            parents = (f"{s.id & 0xFFFFFFFF}.#epoch.{stream.reference}" for s in stream.segments(stream.reference))
            names = tuple(f"{event.scope}/{event.stream}/{parent}#transaction.{digits}" for parent in parents)
            self._all[id] = prepared = Prepared(id, names)
            ids.append(prepared)
        self._ranges[event.first] = ids

    def _discarded(self, event: ev.TransactionRangeDiscarded) -> None:
        left = [prepared.id for prepared in self._ranges[event.first] if prepared.state in ("reserved", "prepared")]
        if list(event.transactions) != left:
            raise Violation(f"{event}: not opened are {left}")
        for id in left:
            self._all[id].state = "discarded"

    def _move(self, event: Any, id: str, before: str, after: str) -> None:
        prepared = self._all.get(id)
        if prepared is None or prepared.state != before:
            raise Violation(f"{event}: it is {prepared.state if prepared else 'unknown'}, not {before}")
        prepared.state = after

    def _must_be_stored(self, prepared: Prepared) -> None:
        missing = [name for name in prepared.names if name not in self._plant.stores.segments]
        if missing:
            raise Violation(f"{prepared.id} is {prepared.state}, but {missing} are missing")

    def _stream_deleted(self, event: Any) -> None:
        prefix = f"{event.scope}/{event.stream}/"
        for prepared in self._all.values():
            if prepared.names[0].startswith(prefix) and prepared.state in ("reserved", "prepared", "discarded"):
                raise Violation(f"{event}: {prepared.id} is {prepared.state}")
