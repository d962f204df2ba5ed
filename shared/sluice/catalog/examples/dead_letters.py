"""Examples of dead letters: a request that failed, bytes that cannot be decoded, and what became of the first."""

import msgspec

from sluice.catalog.examples import names as n
from sluice.catalog.examples.example import Example, example
from sluice.domain.ids import StreamId
from sluice.domain.names import REQUEST_STREAM, SYSTEM_SCOPE
from sluice.domain.segment import segment_name
from sluice.kafka.dead_letters import DeadLetterSettled, Settlement, dead_letter_headers
from sluice.kafka.topics import DEAD_LETTERS


def dead_letter_examples(requests: list[Example]) -> list[Example]:
    """One of the requests, an event of a segment that could not be read, and that the first was sent again."""
    source = next(request for request in requests if request.type == "SealStream")
    origin = {"topic": source.topic, "partition": "5", "offset": "1042"}
    reason = "RuntimeError: the segment store sent a reply of an unknown type"
    headers = dead_letter_headers(origin, source.headers, source.key, n.WORKFLOWS, reason, n.at(84.6))
    given_up = msgspec.structs.replace(source, topic=DEAD_LETTERS.name, headers=headers)
    key = StreamId(SYSTEM_SCOPE, REQUEST_STREAM).key
    origin = {"segment": segment_name(SYSTEM_SCOPE, REQUEST_STREAM, 0), "offset": "508"}
    headers = dead_letter_headers(origin, [], key, n.WORKFLOWS, "format version 9 is not known", n.at(88))
    unread = Example(DEAD_LETTERS.name, key, headers, b"\x09\x00\x00\x00\x1f\xff")
    settled = DeadLetterSettled(partition=5, offset=0, how=Settlement.REPLAYED, at=n.at(95), by=n.GATEWAY)
    kind, value = type(settled).__name__, msgspec.json.encode(settled)
    again = example(DEAD_LETTERS.name, source.key, kind, "5-0-replayed", settled.by, settled.at, value)
    return [given_up, unread, again]
