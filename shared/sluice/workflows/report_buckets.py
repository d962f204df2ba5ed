"""One step for many keys at once: a bucket holds what is remembered of all keys with the same hash. Pure.

Spark's price for a stateful operator is per group and batch, and is many times that of a decision; so it is given few
groups, each a bucket, instead of one for each stream. What is remembered of a key stays encoded until a report on the
key or its time has come, so a step costs the keys it is about, and one copy of the rest.

A key is saved for who decides after this driver: at once when something is requested for it, otherwise `save_ms` after
the first change that is not saved. Saved keys come back as records, before the first reports. One that is known is not
taken from there; and if another driver has written it, or has it forgotten, one that woke late, say, it is saved anew.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec

from sluice.kafka.topics import MAX_REQUEST_BYTES
from sluice.policies.memory import StreamMemory
from sluice.policies.reported import HistoryRow
from sluice.workflows.report_decider import Decided, OutgoingRecord, ReportDecider, ReportRecord


class Slot(msgspec.Struct, frozen=True, array_like=True):
    """What is remembered of a key, and when (epoch ms) something is to be decided on it without a report.

    `unsaved_since`: of the first change that is not saved, epoch ms; None if all is.
    """

    wake_at: int
    memory: bytes
    unsaved_since: int | None = None


_slots = msgspec.msgpack.Decoder(dict[str, Slot])
_saved = msgspec.json.Decoder(StreamMemory)


class BucketStep(msgspec.Struct):
    """What came of a step: as Decided, for all of the bucket. `saved` are records of its memory.

    `unsaved_since`: of the first change in it that is not saved.
    """

    memory: bytes | None = None
    wake_at: int | None = None
    sendings: list[OutgoingRecord] = []
    rows: list[HistoryRow] = []
    saved: list[OutgoingRecord] = []
    unsaved_since: int | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What came of a bucket's step: records to send, decisions to keep, and when (epoch ms) it wants the next one.

    `records` is how many it was about, `ends` where those of reports end, by partition. `saved` are records of what it
    remembers; what has changed there since `unsaved_since` is in none of them. `at` is the time of the batch.
    """

    sendings: list[OutgoingRecord]
    rows: list[HistoryRow]
    bucket: int
    wake_at: int | None
    records: int = 0
    saved: list[OutgoingRecord] = []
    unsaved_since: int | None = None
    ends: dict[int, int] = {}
    at: int = 0


def outcome_of(step: BucketStep, bucket: int, records: Sequence[ReportRecord], topic: str, now: int) -> Outcome:
    """What came of a step about these records, by partition and offset; `topic` is that of the reports."""
    ends = {record.partition: record.offset + 1 for record in records if record.topic == topic}
    return Outcome(
        step.sendings, step.rows, bucket, step.wake_at, len(records), step.saved, step.unsaved_since, ends, now
    )


class BucketDecider:
    """Takes steps for buckets of keys; each key's step is that of `ReportDecider`. `topic` is where they are saved."""

    def __init__(self, decider: ReportDecider, topic: str, save_ms: int) -> None:
        self._decider = decider
        self._topic = topic
        self._save_ms = save_ms

    def step(self, memory: bytes | None, records: Iterable[ReportRecord], now: int) -> BucketStep:
        """Decide on every key with reports, and on those whose time has come; `now` in epoch ms.

        The records of each key count in the order in which they are given. Of those that it was saved in the last one
        counts, and it is first.
        """
        slots = _slots.decode(memory) if memory is not None else {}
        by_key: dict[str, list[ReportRecord]] = defaultdict(list)
        saved: dict[str, ReportRecord] = {}
        whole = BucketStep()
        for record in records:
            if record.topic == self._topic:
                saved[record.key] = record
            else:
                by_key[record.key].append(record)
        for record in saved.values():
            self._restore(whole, slots, record, now)
        due = [key for key, slot in slots.items() if slot.wake_at <= now and key not in by_key]
        for key in (*by_key, *due):
            slot = slots.pop(key, None)
            step = self._decider.step(slot.memory if slot is not None else None, by_key.get(key, ()), now)
            whole.sendings += step.sendings
            whole.rows += step.rows
            if step.memory is not None and step.wake_at is not None:
                slots[key] = self._changed(slot, step, step.memory, step.wake_at, now)
            elif slot is not None:
                whole.saved.append(self._decider.forgotten(key, self._topic, now))
        self._save(whole, slots, now)
        whole.memory = msgspec.msgpack.encode(slots) if slots else None
        unsaved = [slot.unsaved_since for slot in slots.values() if slot.unsaved_since is not None]
        whole.unsaved_since = min(unsaved, default=None)
        wakes = [slot.wake_at for slot in slots.values()]
        wakes += [at for since in unsaved if (at := since + self._save_ms) > now]
        whole.wake_at = min(wakes, default=None)
        return whole

    def _restore(self, whole: BucketStep, slots: dict[str, Slot], record: ReportRecord, now: int) -> None:
        known = slots.get(record.key)
        try:
            saved = _saved.decode(record.value) if record.value else None
            if known is None and saved is not None:
                # What was reported since it was saved comes first.
                wake_at = max(saved.wake_at, now + self._save_ms // 10)
                slots[record.key] = Slot(wake_at, self._decider.restored(saved))
            elif known is not None and (saved is None or saved.by != self._decider.source):
                slots[record.key] = msgspec.structs.replace(known, unsaved_since=now - self._save_ms)
        except Exception as error:  # noqa: BLE001 - whatever it is, it would be the same for ever
            whole.sendings.append(self._decider.dead_letter(record, error, now))

    def _changed(self, before: Slot | None, step: Decided, memory: bytes, wake_at: int, now: int) -> Slot:
        since = before.unsaved_since if before is not None else None
        if step.acts:
            since = now - self._save_ms
        elif since is None and (before is None or before.memory != memory):
            since = now
        return Slot(wake_at, memory, since)

    def _save(self, whole: BucketStep, slots: dict[str, Slot], now: int) -> None:
        for key, slot in slots.items():
            if slot.unsaved_since is not None and slot.unsaved_since + self._save_ms <= now:
                record = self._decider.saved(key, slot.memory, slot.wake_at, self._topic, now)
                # What no record can hold stays unsaved: the next driver reads the reports that it was made of.
                if len(record.value) <= MAX_REQUEST_BYTES:
                    whole.saved.append(record)
                    slots[key] = msgspec.structs.replace(slot, unsaved_since=None)
