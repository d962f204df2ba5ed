"""What a call cannot go below: the sum of the parts that must follow each other, as they cost bare in the same run.

The rule: one empty gRPC call for each call of the client, one way through Kafka for each request until its owner has
it, one Kafka round trip for each durable record that the reply needs, one call on the segment stores for what must be
done between two records; what may run side by side is measured side by side. Deciding, folding and a client that looks
for the end every 2 ms do not count: those are ours to make small.

    createScope, ping         gRPC + request + Kafka
    commit, createTransaction the same: on a stream in use the segments are there before the call
    createStream, 1 segment   gRPC + request + Kafka + CreateSegment + Kafka
    createStream, 4 segments  gRPC + request + Kafka + 4 CreateSegment + Kafka
    scale 1 to 2              gRPC (segments) + gRPC + request + Kafka + 2 CreateSegment + Kafka + seal + length + Kafka
                              + gRPC (checkScale)
    seal and delete           gRPC + request + Kafka + seal + Kafka, then gRPC + request + Kafka + delete + Kafka
    open to COMMITTED         gRPC + request + Kafka (opened), gRPC + request + Kafka (committing) + the merge
                              + Kafka (committed) + gRPC (its state)
      event in 1 of 4           the merge: 1 merge beside sealing 3 empty segments
      event in each of 4        the merge: 4 merges
      empty                     the merge: sealing 4 empty segments

Lengths are in no sum of a commit: they can be read while the record before them is under way. createStream counts one
segment, although each stream has a second one for its marks: that one need not be there at once. Pure.
"""

from collections.abc import Mapping

from bench import calls
from bench.figures import Figures

GRPC, REQUEST, KAFKA = "gRPC", "request", "Kafka"
CREATE, CREATE_2, CREATE_4 = "CreateSegment", "2 CreateSegment", "4 CreateSegment"
MERGE, MERGE_4 = "merge", "4 merges"
MERGE_SEAL_3 = "merge beside 3 empty seals"
MERGE_EMPTY_4 = "4 empty merges"
SEAL, SEAL_4 = "seal", "4 empty seals"
LENGTH, LENGTH_4 = "length", "4 lengths"
DELETE = "delete"

PARTS = {
    GRPC: "an empty call on the gateway: its health",
    REQUEST: "append one record until the member of a consumer group with the services' settings has it",
    KAFKA: "append one record until a follower with the services' settings has folded it",
    CREATE: "one segment of a stream",
    CREATE_2: "two at once",
    CREATE_4: "four at once",
    MERGE: "a transaction's segment with one event into its segment",
    MERGE_4: "four at once, each into its own",
    MERGE_SEAL_3: "all four segments of a transaction at once, one of them with an event",
    MERGE_EMPTY_4: "the same without events",
    SEAL: "a segment with one event",
    SEAL_4: "four at once, of a transaction",
    LENGTH: "one segment",
    LENGTH_4: "four at once",
    DELETE: "a sealed segment",
}
"""What is measured bare, in the order of the table."""

_DECIDED = (GRPC, REQUEST, KAFKA)

FLOORS: dict[str, tuple[str, ...]] = {
    calls.CREATE_SCOPE: _DECIDED,
    calls.CREATE_STREAM: (*_DECIDED, CREATE, KAFKA),
    calls.CREATE_STREAM_4: (*_DECIDED, CREATE_4, KAFKA),
    calls.SCALE: (GRPC, *_DECIDED, CREATE_2, KAFKA, SEAL, LENGTH, KAFKA, GRPC),
    calls.SEAL_DELETE: (*_DECIDED, SEAL, KAFKA, *_DECIDED, DELETE, KAFKA),
    calls.CREATE_TXN: _DECIDED,
    calls.PING_TXN: _DECIDED,
    calls.COMMIT_TXN: _DECIDED,
    calls.WHOLE_ONE: (*_DECIDED, *_DECIDED, MERGE_SEAL_3, KAFKA, GRPC),
    calls.WHOLE_EACH: (*_DECIDED, *_DECIDED, MERGE_4, KAFKA, GRPC),
    calls.WHOLE_EMPTY: (*_DECIDED, *_DECIDED, SEAL_4, KAFKA, GRPC),
}
"""The parts that follow each other."""


def floor_ms(call: str, parts: Mapping[str, Figures]) -> float | None:
    """The sum of the parts' p50; None if the call has no floor or a part was not measured."""
    costs = [_p50(parts, part) for part in FLOORS.get(call, ())]
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None


def in_words(call: str, parts: Mapping[str, Figures]) -> str:
    """The formula with its figures: "Kafka 3.0 + CreateSegment 9.5 + Kafka 3.0"."""
    costs = ((part, _p50(parts, part)) for part in FLOORS[call])
    return " + ".join(part if cost is None else f"{part} {cost:.1f}" for part, cost in costs)


def _p50(parts: Mapping[str, Figures], part: str) -> float | None:
    figures = parts.get(part)
    return figures.p50_ms if figures is not None else None
