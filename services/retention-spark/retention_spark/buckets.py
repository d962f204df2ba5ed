"""One step for many keys at once: a bucket holds what is remembered of all keys with the same hash. Pure.

Spark's price for a stateful operator is per group and batch, and is many times that of a decision; so it is given few
groups, each a bucket, instead of one for each stream. What is remembered of a key stays encoded until a report on the
key or its time has come, so a step costs the keys it is about, and one copy of the rest.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from retention_spark.report_decider import Decided, ReportDecider, ReportRecord


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """What is remembered of a key, and when (epoch ms) something is to be decided on it without a report."""

    wake_at: int
    memory: bytes


_slots = msgspec.msgpack.Decoder(dict[str, Slot])


class BucketDecider:
    """Takes steps for buckets of keys; each key's step is that of `ReportDecider`."""

    def __init__(self, decider: ReportDecider) -> None:
        self._decider = decider

    def step(self, memory: bytes | None, records: Iterable[ReportRecord], now: int) -> Decided:
        """Decide on every key with records, and on those whose time has come; `now` in epoch ms.

        The records of each key count in the order in which they are given.
        """
        slots = _slots.decode(memory) if memory is not None else {}
        by_key: dict[str, list[ReportRecord]] = defaultdict(list)
        for record in records:
            by_key[record.key].append(record)
        due = [key for key, slot in slots.items() if slot.wake_at <= now and key not in by_key]
        whole = Decided()
        for key in (*by_key, *due):
            slot = slots.pop(key, None)
            step = self._decider.step(slot.memory if slot is not None else None, by_key.get(key, ()), now)
            whole.sendings += step.sendings
            whole.rows += step.rows
            if step.memory is not None and step.wake_at is not None:
                slots[key] = Slot(step.wake_at, step.memory)
        whole.memory = msgspec.msgpack.encode(slots) if slots else None
        whole.wake_at = min((slot.wake_at for slot in slots.values()), default=None)
        return whole
