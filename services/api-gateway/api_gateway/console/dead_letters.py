"""The dead letters as operators deal with them: list, drop, replay.

What is known of each letter is held here without its value, and brought up to date before each answer by reading on
where the last reading ended. Belongs to the event loop; the reading itself is done by a thread, one at a time.

A replay is at least once: the record is sent, then the settlement. A process that ends in between leaves a letter that
can be replayed a second time, and two gateways that get one request at once may both send it. Each of these is a
new request. Of several settlements a replay counts, for what was sent cannot be taken back.
"""

import asyncio
import heapq
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import msgspec

from sluice.engine.ports import Chance, Clock, Message
from sluice.kafka.dead_letters import (
    DeadLetterSettled,
    DeadLettersUnavailableError,
    FailedRecord,
    Settlement,
    failed_record_of,
    send_settlement,
    settled_in,
)
from sluice.kafka.headers import Headers
from sluice.kafka.producer import RecordProducer
from sluice.kafka.requests import decode_request, encode_request
from sluice.kafka.topics import REPLAYABLE
from sluice.security.caller import calling_principal

MAX_KEPT = 20_000
"""How many letters, the latest ones, are held."""

PAGE_BYTES = 8 * 1024 * 1024
"""How much of values one page holds, unless one letter alone is larger."""

MAX_READ_S = 30.0
"""How long one reading may take; what is known is brought up to date from where it ended the next time."""

MAX_BESIDE = 100
"""So many records between two letters are read with them; more are passed over."""

MAX_READINGS = 8
"""How often one page goes to Kafka at most."""

RecordOffset = tuple[int, int]
"""Partition and offset in the topic of dead letters."""

Read = Callable[[Mapping[int, int], Mapping[int, int], Callable[[Message], None]], None]
"""`read_dead_letters` of some Kafka."""

_REPLAYABLE = {topic.name for topic in REPLAYABLE}


class NoSuchLetterError(Exception):
    """There is no dead letter at that offset, or it is too old to be known."""


class SettledAlreadyError(Exception):
    """The dead letter was dropped or replayed before."""


class NotReplayableError(Exception):
    """The dead letter does not come from a topic that anything could be sent to again."""


class Letter(msgspec.Struct, frozen=True):
    """A dead letter without its value, which has `size` bytes. `topic` is where it came from, "" if from none.

    `at` in epoch ms.
    """

    record_offset: RecordOffset
    at: int
    topic: str
    key: str
    reason: str
    service: str
    size: int

    @property
    def order(self) -> tuple[int, int, int]:
        """The latest letter has the highest."""
        return self.at, *self.record_offset


class Page(msgspec.Struct, frozen=True):
    """Letters with their values and what became of them; `end` is the `order` behind which more are, if there are."""

    letters: list[tuple[Letter, bytes, Settlement | None]]
    end: tuple[int, int, int] | None


class LetterCounts(NamedTuple):
    """How many letters are open, and how many records the topic had: while these are as many, no letter changed."""

    open: int
    records: int


class DeadLetters:
    """The dead letters of a topic with so many partitions; `by` is this process as service/instance."""

    def __init__(
        self, read: Read, producer: RecordProducer, partitions: int, by: str, clock: Clock, chance: Chance
    ) -> None:
        self._read = read
        self._producer = producer
        self._by = by
        self._clock = clock
        self._chance = chance
        self._next = dict.fromkeys(range(partitions), 0)
        self._letters: dict[RecordOffset, Letter] = {}
        self._settled: dict[RecordOffset, Settlement] = {}
        self._turn = asyncio.Lock()

    async def page(self, limit: int, before: tuple[int, ...] | None, with_settled: bool) -> Page:
        """The latest letters before a letter's `order`, with their values. Raises DeadLettersUnavailableError.

        Fewer than `limit` where their values are large.
        """
        async with self._turn:
            await self._catch_up()
            wanted = (
                letter
                for letter in self._letters.values()
                if (with_settled or letter.record_offset not in self._settled)
                and (before is None or letter.order < before)
            )
            latest = heapq.nlargest(limit + 1, wanted, key=lambda letter: letter.order)
            letters = list(_within(latest[:limit], PAGE_BYTES))
            sources = await self._fetch(letter.record_offset for letter in letters)
        found = [
            (le, sources[le.record_offset].value, self._settled.get(le.record_offset))
            for le in letters
            if le.record_offset in sources
        ]
        return Page(found, letters[-1].order if len(letters) < len(latest) else None)

    async def counts(self) -> LetterCounts:
        """How many letters were neither dropped nor replayed. Raises DeadLettersUnavailableError."""
        async with self._turn:
            await self._catch_up()
            is_open = (record_offset not in self._settled for record_offset in self._letters)
            return LetterCounts(sum(is_open), sum(self._next.values()))

    async def one(self, record_offset: RecordOffset) -> tuple[Letter, bytes, Settlement | None]:
        """The letter with its value and what became of it. Raises NoSuchLetterError, DeadLettersUnavailableError."""
        async with self._turn:
            await self._catch_up()
            letter = self._letter(record_offset)
            source = await self._source(record_offset)
        return letter, source.value, self._settled.get(record_offset)

    async def drop(self, record_offset: RecordOffset) -> None:
        """Record that the letter needs no more attention.

        Raises NoSuchLetterError, SettledAlreadyError, DeadLettersUnavailableError, SendError.
        """
        async with self._turn:
            letter = await self._open_letter(record_offset)
            await self._settle(letter, Settlement.DROPPED)
            await self._catch_up()
            if self._settled.get(record_offset) is Settlement.REPLAYED:
                raise SettledAlreadyError("it was replayed at the same moment")

    async def replay(self, record_offset: RecordOffset) -> str:
        """Send the record back to where it came from; the id of the request that it is, "" if it is none.

        A request gets a fresh id, because the one it had has been answered. Raises as `drop` does, and
        NotReplayableError.
        """
        async with self._turn:
            letter = await self._open_letter(record_offset)
            if letter.topic not in _REPLAYABLE:
                raise NotReplayableError(f"it comes from {letter.topic or 'no topic'}")
            source = await self._source(record_offset)
            id, value = _with_id(source.value, f"{self._chance.token()}-replay")
            headers: Headers = [(name, text) for name, text in source.headers if not name.startswith("sluice_")]
            if id:
                headers = [(name, id if name == "ce_id" else text) for name, text in headers]
            await self._producer.send(letter.topic, letter.key, value, headers)
            await self._settle(letter, Settlement.REPLAYED)
        return id

    async def _open_letter(self, record_offset: RecordOffset) -> Letter:
        await self._catch_up()
        letter = self._letter(record_offset)
        if record_offset in self._settled:
            raise SettledAlreadyError(f"it was {self._settled[record_offset].value} before")
        return letter

    def _letter(self, record_offset: RecordOffset) -> Letter:
        letter = self._letters.get(record_offset)
        if letter is None:
            raise NoSuchLetterError(
                f"there is no dead letter at offset {record_offset[1]} of partition {record_offset[0]}"
            )
        return letter

    async def _source(self, record_offset: RecordOffset) -> FailedRecord:
        source = (await self._fetch((record_offset,))).get(record_offset)
        if source is None:
            raise NoSuchLetterError("Kafka does not keep it any more")
        return source

    async def _settle(self, letter: Letter, how: Settlement) -> None:
        partition, offset = letter.record_offset
        settled = DeadLetterSettled(
            partition=partition,
            offset=offset,
            how=how,
            at=self._clock.now_ms(),
            by=self._by,
            principal=calling_principal(),
        )
        await send_settlement(self._producer, letter.key, settled)

    async def _catch_up(self) -> None:
        await asyncio.to_thread(self._read, dict(self._next), {}, _in_time(self._take_in))
        self._keep(MAX_KEPT)
        self._settled = {
            record_offset: how for record_offset, how in self._settled.items() if record_offset in self._letters
        }

    def _take_in(self, message: Message) -> None:
        partition, offset = message.partition() or 0, message.offset() or 0
        self._next[partition] = offset + 1
        settled = settled_in(message)
        if settled is not None:
            record_offset = settled.partition, settled.offset
            if settled.how is Settlement.REPLAYED or record_offset not in self._settled:
                self._settled[record_offset] = settled.how
            return
        letter = _letter(message, (partition, offset))
        self._letters[letter.record_offset] = letter
        self._keep(2 * MAX_KEPT)

    def _keep(self, most: int) -> None:
        if len(self._letters) > most:
            latest = heapq.nlargest(MAX_KEPT, self._letters.values(), key=lambda letter: letter.order)
            self._letters = {letter.record_offset: letter for letter in latest}

    async def _fetch(self, record_offsets: Iterable[RecordOffset]) -> dict[RecordOffset, FailedRecord]:
        """The records at these offsets; what Kafka does not retain any more is forgotten here, too."""
        wanted = set(record_offsets)
        found: dict[RecordOffset, FailedRecord] = {}

        def take(message: Message) -> None:
            record_offset = message.partition() or 0, message.offset() or 0
            if record_offset in wanted:
                found[record_offset] = failed_record_of(message)

        in_time = _in_time(take)
        for first, last in readings(wanted):
            await asyncio.to_thread(self._read, first, last, in_time)
        for record_offset in wanted - found.keys():
            del self._letters[record_offset]
        return found


def _letter(message: Message, record_offset: RecordOffset) -> Letter:
    source = failed_record_of(message)
    headers = {name: _text(value) for name, value in source.headers}
    return Letter(
        record_offset=record_offset,
        at=message.timestamp()[1],
        topic=headers.get("sluice_topic", ""),
        key=source.key,
        reason=headers.get("sluice_reason", ""),
        service=headers.get("sluice_service", ""),
        size=len(source.value),
    )


def _in_time(take: Callable[[Message], None]) -> Callable[[Message], None]:
    """The same until MAX_READ_S have passed from now on. What that gives raises DeadLettersUnavailableError."""
    end = time.monotonic() + MAX_READ_S

    def taken(message: Message) -> None:
        take(message)
        if time.monotonic() > end:
            raise DeadLettersUnavailableError(f"the dead letters could not be read within {MAX_READ_S:g} s")

    return taken


def readings(record_offsets: Iterable[RecordOffset]) -> list[tuple[dict[int, int], dict[int, int]]]:
    """The first and the last offset to read of each partition, several times where a partition has long gaps."""
    offsets: dict[int, list[int]] = {}
    for partition, offset in sorted(record_offsets):
        offsets.setdefault(partition, []).append(offset)
    found: list[tuple[dict[int, int], dict[int, int]]] = []
    for partition, own in offsets.items():
        for number, (first, last) in enumerate(_runs(own)):
            if number == len(found):
                found.append(({}, {}))
            found[number][0][partition], found[number][1][partition] = first, last
    return found


def _runs(offsets: list[int]) -> list[tuple[int, int]]:
    """The first and the last of the offsets between their longest gaps; they are in order."""
    gaps = [(before, after) for before, after in pairwise(offsets) if after - before > MAX_BESIDE]
    longest = sorted(heapq.nlargest(MAX_READINGS - 1, gaps, key=lambda gap: gap[1] - gap[0]))
    firsts, lasts = [after for _, after in longest], [before for before, _ in longest]
    return list(zip((offsets[0], *firsts), (*lasts, offsets[-1]), strict=True))


def _within(letters: Iterable[Letter], most_bytes: int) -> Iterator[Letter]:
    """As many of the letters as there is room for, the first one in any case."""
    size = 0
    for number, letter in enumerate(letters):
        size += letter.size
        if number and size > most_bytes:
            return
        yield letter


def _text(value: str | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


def _with_id(value: bytes, id: str) -> tuple[str, bytes]:
    """The record under that id and for the caller if it is a request, and as it is, without an id, otherwise."""
    try:
        request = decode_request(value)
    except msgspec.DecodeError:
        return "", value
    principal = calling_principal() or request.principal
    return id, encode_request(msgspec.structs.replace(request, id=id, principal=principal))
