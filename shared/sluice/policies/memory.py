"""What retention-spark remembers of streams, as it stands in compacted topics: a driver that begins reads it first."""

import msgspec


class StreamMemory(msgspec.Struct, frozen=True):
    """What is remembered under a key: of a stream and of its mark stream, by their names, at `at` (epoch ms).

    At `wake_at` (epoch ms) something is to be decided without a report. What stands in `streams` is for retention-spark
    alone: to one that cannot read it, it is a dead letter, and the stream begins with the next report.
    """

    id: str
    by: str
    at: int
    wake_at: int
    streams: dict[str, msgspec.Raw]
