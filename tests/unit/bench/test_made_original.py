"""The originals that migration is measured with are sound."""

from pathlib import Path

from unit.migration.original import MemoryNodes

from bench.made_original import Made, Writer
from sluice.lookback.progress import unseen
from sluice.pravega.memory import InMemorySegmentStore
from sluice_cli.migration.dump import Dump, dump
from sluice_cli.migration.inspection import Inspector
from sluice_cli.migration.segments import SegmentJudge
from sluice_cli.migration.source import Source
from sluice_cli.migration.to_states import take

STREAMS = 100


async def test_a_made_original_holds_all_invariants_and_can_be_imported(tmp_path: Path) -> None:
    store, made = InMemorySegmentStore(), Made(STREAMS)
    await Writer(store, made).write()
    source = Source(store, MemoryNodes(made.nodes()), 8)
    assert not (await dump(source, tmp_path, 2, lambda: 0, unseen)).changed
    found = Dump(tmp_path)
    inspected = await Inspector(found, SegmentJudge(store, 8), source).run(unseen)
    assert (inspected.problems, inspected.unreadable) == ((), ())
    assert [one.what for one in inspected.unfinished] == ["2 transactions are OPEN"]
    assert inspected.counts["streams"] == STREAMS and inspected.counts["epochs"] > 3 * STREAMS
    assert inspected.counts["readerGroups"] == inspected.counts["tables"] == 1
    assert take(found, 0).remarks == []
