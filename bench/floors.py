"""What a call cannot go below: the sum of the parts that must follow each other, as they cost bare in the same run.

The rule: one Kafka round trip for each durable record that the reply needs, one call on the segment stores for what
must be done between two records; what may run side by side counts once, by its slowest. So a request's way to its owner
does not count, nor does deciding, gRPC or a client that looks for the end every 2 ms: those are ours to make small.

    createScope               Kafka
    createStream, 1 segment   Kafka + CreateSegment + Kafka
    createStream, 4 segments  Kafka + 4 CreateSegment + Kafka
    scale 1 to 2              Kafka + 2 CreateSegment + Kafka + seal + length + Kafka
    seal and delete           Kafka + seal + Kafka, then Kafka + delete + Kafka
    createTransaction         Kafka: on a stream in use the segments are there before the call
    ping, commit              Kafka
    open to COMMITTED         Kafka (opened) + Kafka (committing) + the merge + Kafka (committed)
      event in 1 of 4           the merge: 1 merge, beside sealing 3 empty segments
      event in each of 4        the merge: 4 merges
      empty                     the merge: sealing 4 empty segments

Lengths are in no sum of a commit: they can be read while the record before them is under way. createStream counts one
segment, although each stream has a second one for its marks: that one need not be there at once. Pure.
"""

from collections.abc import Mapping

from bench import calls
from bench.figures import Figures

KAFKA = "Kafka"
CREATE, CREATE_2, CREATE_4 = "CreateSegment", "2 CreateSegment", "4 CreateSegment"
MERGE, MERGE_4 = "merge", "4 merges"
MERGE_EMPTY_4 = "4 empty merges"
SEAL, SEAL_3, SEAL_4 = "seal", "3 empty seals", "4 empty seals"
LENGTH, LENGTH_4 = "length", "4 lengths"
DELETE = "delete"

PARTS = {
    KAFKA: "append one record until a follower with the services' settings has folded it",
    CREATE: "one segment of a stream",
    CREATE_2: "two at once",
    CREATE_4: "four at once",
    MERGE: "a transaction's segment with one event into its segment",
    MERGE_4: "four at once, each into its own",
    MERGE_EMPTY_4: "the same without events",
    SEAL: "a segment with one event",
    SEAL_3: "three at once, of a transaction",
    SEAL_4: "four at once, of a transaction",
    LENGTH: "one segment",
    LENGTH_4: "four at once",
    DELETE: "a sealed segment",
}
"""What is measured bare, in the order of the table."""

Formula = tuple[tuple[str, ...], ...]
"""Steps that follow each other; the parts of one step run side by side."""

_COMMITTED = ((KAFKA,), (KAFKA,))

FLOORS: dict[str, Formula] = {
    calls.CREATE_SCOPE: ((KAFKA,),),
    calls.CREATE_STREAM: ((KAFKA,), (CREATE,), (KAFKA,)),
    calls.CREATE_STREAM_4: ((KAFKA,), (CREATE_4,), (KAFKA,)),
    calls.SCALE: ((KAFKA,), (CREATE_2,), (KAFKA,), (SEAL,), (LENGTH,), (KAFKA,)),
    calls.SEAL_DELETE: ((KAFKA,), (SEAL,), (KAFKA,), (KAFKA,), (DELETE,), (KAFKA,)),
    calls.CREATE_TXN: ((KAFKA,),),
    calls.PING_TXN: ((KAFKA,),),
    calls.COMMIT_TXN: ((KAFKA,),),
    calls.WHOLE_ONE: (*_COMMITTED, (MERGE, SEAL_3), (KAFKA,)),
    calls.WHOLE_EACH: (*_COMMITTED, (MERGE_4,), (KAFKA,)),
    calls.WHOLE_EMPTY: (*_COMMITTED, (SEAL_4,), (KAFKA,)),
}


def floor_ms(call: str, parts: Mapping[str, Figures]) -> float | None:
    """The sum of the parts' p50; None if the call has no floor or a part was not measured."""
    formula = FLOORS.get(call, ())
    costs = [[_p50(parts, part) for part in step] for step in formula]
    known = [max(c for c in step if c is not None) for step in costs if None not in step]
    return sum(known) if known and len(known) == len(costs) else None


def in_words(call: str, parts: Mapping[str, Figures]) -> str:
    """The formula with its figures: "Kafka 3.0 + CreateSegment 9.5 + Kafka 3.0"."""
    return " + ".join(_step(step, parts) for step in FLOORS[call])


def _step(step: tuple[str, ...], parts: Mapping[str, Figures]) -> str:
    texts = [part if (cost := _p50(parts, part)) is None else f"{part} {cost:.1f}" for part in step]
    return texts[0] if len(texts) == 1 else f"longest of ({', '.join(texts)})"


def _p50(parts: Mapping[str, Figures], part: str) -> float | None:
    figures = parts.get(part)
    return figures.p50_ms if figures is not None else None
