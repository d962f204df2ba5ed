"""How the records of the examples are told: each with the versions that its events meet, so that every one counts."""

from collections import Counter

from sluice.catalog.examples import names as n
from sluice.catalog.examples.example import Example, example
from sluice.domain.decision import Reply
from sluice.domain.events import Event
from sluice.domain.names import key_of
from sluice.journal.record import Record, encode_record, record_type
from sluice.messaging.topics import JOURNAL

SUCCESS = Reply("SUCCESS")


class History:
    """Records, one after the other; `seconds` count from the start of the examples' day."""

    def __init__(self) -> None:
        self.examples: list[Example] = []
        self._versions: Counter[str] = Counter()

    def tell(
        self,
        seconds: float,
        by: str,
        *events: Event,
        request: str | None = None,
        reply: Reply | None = None,
        guards: tuple[str, ...] = (),
        key: str = "",
    ) -> None:
        """Add a record of these events; `guards` are aggregates that were read besides, `key` that of a refusal."""
        touched = dict.fromkeys(event.aggregate for event in events)
        record = Record(
            id=f"5f0c3a9b21-{len(self.examples) + 1:x}",
            at=n.at(seconds),
            by=by,
            expect={aggregate: self._versions[aggregate] for aggregate in (*touched, *guards)},
            request=request,
            events=events,
            reply=reply,
        )
        self._versions.update(touched.keys())
        key = key or key_of(events[0].aggregate)
        told = example(JOURNAL.name, key, record_type(record), record.id, by, record.at, encode_record(record))
        self.examples.append(told)
