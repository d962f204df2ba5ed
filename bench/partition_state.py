"""What the state of many streams takes: memory for each, time to fold its records, to capture it and to restore it.

No Kafka: the records of the journal's load are folded by views in this process, as a service has them. Memory is what
the process holds afterwards beyond what it held before, so what is restored is measured in a process of its own. With
`--pieces` it says which lines of the program the memory was taken by.
"""

import argparse
import gc
import resource
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from bench.journal_load import STREAMS, UPDATES, Line, Story, lines_of
from sluice.domain.model import DomainModel
from sluice.engine.capture import Part
from sluice.engine.fold import PartitionView
from sluice.engine.partition import partition_keys, partition_of

PARTITIONS = 16
BATCH = 500
"""Records between two looks at what may rest, as a service gets them while it loads."""

_AT_MS = 1_700_000_000_000
_PIECES = 15


def rss() -> int:
    """Bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def views(warm: int) -> list[PartitionView]:
    model = DomainModel()
    return [PartitionView(model, key, warm=warm // PARTITIONS) for key in partition_keys(PARTITIONS)]


def fold(into: list[PartitionView], lines: Iterator[Line]) -> tuple[int, float]:
    """The number of records, and the CPU seconds of folding them, decoding and putting to rest included."""
    decode, count, seconds = DomainModel().decode, 0, 0.0
    while batch := [(into[partition_of(line.key, PARTITIONS)], line.value) for line in islice(lines, BATCH)]:
        began = time.process_time()
        for view, value in batch:
            view.fold(decode(value), view.next_offset, _AT_MS)
        for view in into:
            while view.settle(1000):
                pass
        count, seconds = count + len(batch), seconds + time.process_time() - began
    return count, seconds


def measure(streams: int, warm: int, file: Path) -> None:
    """Fold, say what it took, and capture into the file."""
    story = Story()
    story.tell(STREAMS, UPDATES)
    gc.collect()
    gc.disable()
    before, folded = rss(), views(warm)
    records, seconds = fold(folded, lines_of(story, streams // STREAMS))
    held = rss() - before
    print(f"folded {records:,} records: {seconds / records * 1e6:.2f} us of CPU each")
    print(f"held {held / streams:,.0f} bytes per stream; {sum(view.resting for view in folded):,} aggregates rest")
    began, size = time.process_time(), 0
    pack = msgspec.msgpack.Encoder().encode
    with file.open("wb") as out:
        for view in folded:
            packed = pack(list(view.capture()))
            size += out.write(len(packed).to_bytes(8, "big") + packed)
    print(f"captured in {time.process_time() - began:.2f} s of CPU, {size / streams:,.0f} bytes per stream")


def restore(streams: int, warm: int, file: Path) -> None:
    """Restore from the file, and say what it took."""
    unpack = msgspec.msgpack.Decoder(list[Part]).decode
    gc.disable()
    before, seconds, restored = rss(), 0.0, views(warm)
    with file.open("rb") as source:
        for view in restored:
            packed = source.read(int.from_bytes(source.read(8), "big"))
            began = time.process_time()
            view.restore(unpack(packed))
            seconds += time.process_time() - began
            del packed
    held = rss() - before
    print(f"restored in {seconds:.2f} s of CPU, {held / streams:,.0f} bytes per stream")


def pieces(streams: int, warm: int) -> None:
    """Say which lines took the memory that is held when all is folded."""
    story = Story()
    story.tell(STREAMS, UPDATES)
    tracemalloc.start()
    folded = views(warm)
    fold(folded, lines_of(story, streams // STREAMS))
    gc.collect()
    for found in tracemalloc.take_snapshot().statistics("lineno")[:_PIECES]:
        frame = found.traceback[0]
        place = "/".join(Path(frame.filename).parts[-3:])
        print(f"{found.size / streams:8.0f} bytes per stream  {place}:{frame.lineno}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--streams", type=int, default=100_000, help="each has a mark stream beside it")
    parser.add_argument("--warm", type=int, default=10_000, help="aggregates that stay decoded")
    parser.add_argument("--pieces", action="store_true", help="say which lines take the memory")
    parser.add_argument("--restore", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.restore is not None:
        restore(given.streams, given.warm, given.restore)
    elif given.pieces:
        pieces(given.streams, given.warm)
    else:
        with tempfile.NamedTemporaryFile() as file:
            measure(given.streams, given.warm, Path(file.name))
            sys.stdout.flush()
            same = ["--streams", str(given.streams), "--warm", str(given.warm), "--restore", file.name]
            subprocess.run([sys.executable, "-m", "bench.partition_state", *same], check=True)


if __name__ == "__main__":
    main()
