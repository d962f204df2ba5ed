"""How the records of the examples are made: each with the versions that its events meet, so that every one counts."""

from collections import Counter

import msgspec

from sluice.catalog.examples import names as n
from sluice.catalog.examples.example import Example, example
from sluice.domain.decision import Reply
from sluice.domain.events import Event
from sluice.domain.model import JournalEntry, JournalRecord, encode_record
from sluice.domain.names import key_of
from sluice.domain.status import Status
from sluice.engine.record import RequestPosition, Source, record_kind
from sluice.kafka.topics import JOURNAL, Topic

SUCCESS = Reply(Status.SUCCESS)

_LEADER_EPOCH = 3
_FIRST_OFFSET = 1040


class History:
    """Records, one after the other; `seconds` count from the start of the examples' day.

    An entry `decides` the next request of that topic: the request's offset is its source. `guards` are aggregates that
    were read besides.
    """

    def __init__(self) -> None:
        self.examples: list[Example] = []
        self._last: JournalRecord | None = None
        self._versions: Counter[str] = Counter()
        self._decided: Counter[str] = Counter()

    def append(
        self,
        seconds: float,
        by: str,
        *events: Event,
        decides: Topic | None = None,
        request: str | None = None,
        reply: Reply | None = None,
        guards: tuple[str, ...] = (),
        key: str = "",
    ) -> None:
        """Add a record of one entry with these events; `key` is that of a refusal."""
        floors: dict[str, RequestPosition] = {}
        if decides is not None:
            next_one = self._next_source(decides)
            floors = {next_one.topic: next_one.position}
        entry = self._entry(events, decides, request, reply, guards)
        record = JournalRecord(
            id=f"5f0c3a9b21-{len(self.examples) + 1:x}", at=n.at(seconds), by=by, entries=(entry,), floors=floors
        )
        self._put(key or key_of(events[0].aggregate), record)

    def also(
        self,
        *events: Event,
        decides: Topic | None = None,
        request: str | None = None,
        reply: Reply | None = None,
        guards: tuple[str, ...] = (),
    ) -> None:
        """Add an entry to the last record: of a request that came together with that one's."""
        last, key = self._last, self.examples.pop().key
        assert last is not None
        entry = self._entry(events, decides, request, reply, guards)
        self._put(key, msgspec.structs.replace(last, entries=(*last.entries, entry)))

    def _entry(
        self,
        events: tuple[Event, ...],
        decides: Topic | None,
        request: str | None,
        reply: Reply | None,
        guards: tuple[str, ...],
    ) -> JournalEntry:
        touched = dict.fromkeys(event.aggregate for event in events)
        expect = {aggregate: self._versions[aggregate] for aggregate in (*touched, *guards)}
        self._versions.update(touched.keys())
        source = None
        if decides is not None:
            source = self._next_source(decides)
            self._decided[decides.name] += 1
        return JournalEntry(expect, events, request, reply, source)

    def _next_source(self, topic: Topic) -> Source:
        return Source(n.topic_identity(topic.name), _LEADER_EPOCH, _FIRST_OFFSET + self._decided[topic.name])

    def _put(self, key: str, record: JournalRecord) -> None:
        self._last = record
        made = example(JOURNAL.name, key, record_kind(record), record.id, record.by, record.at, encode_record(record))
        self.examples.append(made)
