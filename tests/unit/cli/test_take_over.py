"""A journal in memory that is held, gets what an original knew, and is released."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.originals import GrowingStream, MemoryOriginal, T
from unit.cli.conftest import Cli
from unit.cli.memory import MemorySource, MemoryTopics
from unit.migration.original import CONTROLLER, Original

from sluice.domain.model import DomainModel, JournalRecord, decode_record, encode_record
from sluice.engine.fold import PartitionView
from sluice.engine.record import HELD
from sluice.kafka.topics import JOURNAL
from sluice.lookback.progress import unseen
from sluice_cli.errors import CommandError, RefusedError
from sluice_cli.migration import model
from sluice_cli.migration.dump import dump
from sluice_cli.migration.importing import import_original


def holds(source: MemorySource) -> list[list[int]]:
    return [[decode_record(record.value or b"").whole_at for record in log] for log in source.logs[JOURNAL.name]]


def test_an_empty_journal_is_held_once_and_released(cli: Cli, source: MemorySource) -> None:
    assert cli("migrate", "hold", "--partitions", 3).code == 0
    assert "held already" in cli("migrate", "hold", "--partitions", 3).out
    assert holds(source) == [[HELD]] * 3
    refused = cli("migrate", "release")
    assert refused.code == 1 and "nothing was imported" in refused.err
    for released in ([0, 1, 2], [1]):
        # The second one stands for one that was broken off between partitions.
        for partition in released:
            del source.logs[JOURNAL.name][partition][1:]
        assert cli("migrate", "release", "--empty").code == 0
        assert holds(source) == [[HELD, 1]] * 3
    refused = cli("migrate", "hold", "--partitions", 3)
    assert refused.code == 1 and "was released" in refused.err


def test_a_hold_that_was_broken_off_goes_on(cli: Cli, source: MemorySource) -> None:
    assert cli("migrate", "hold", "--partitions", 3).code == 0
    source.logs[JOURNAL.name][1].clear()
    refused = cli("migrate", "release", "--empty")
    assert refused.code == 1 and "not in all partitions" in refused.err
    assert "The journal is held" in cli("migrate", "hold", "--partitions", 3).out
    assert holds(source) == [[HELD]] * 3


def test_a_journal_with_records_is_neither_held_nor_released(cli: Cli, source: MemorySource) -> None:
    source.append(JOURNAL.name, "cluster", encode_record(JournalRecord(id="any", at=1, by="test")))
    for words in (("hold", "--partitions", 4), ("release", "--empty")):
        refused = cli("migrate", *words)
        assert refused.code == 1 and "the journal is not held" in refused.err


def import_into(source: MemorySource, *things: model.Thing, left_out: tuple[str, ...] = (), now: int = T) -> Any:
    return import_original(source, MemoryTopics(source), MemoryOriginal(*things), left_out, now, unseen)


def values(source: MemorySource) -> list[list[bytes | None]]:
    return [[record.value for record in log] for log in source.logs[JOURNAL.name]]


def test_what_is_imported_twice_or_in_two_goes_is_imported_once(cli: Cli, source: MemorySource) -> None:
    things = [GrowingStream(f"st{n}").stream() for n in range(20)]
    assert cli("migrate", "hold", "--partitions", 3).code == 0
    found = import_into(source, *things)
    assert (found["streams"], found["internalStreams"], found["scopes"]) == (20, 20, 1)
    assert found["appended"] == found["records"] and found["remarks"] == []
    once = values(source)
    assert import_into(source, *things, now=T + 99)["appended"] == 0 and values(source) == once
    for log in source.logs[JOURNAL.name]:
        del log[2:]
    refused = cli("migrate", "release")
    assert refused.code == 1 and "not complete" in refused.err
    assert import_into(source, *things, now=T + 99)["appended"] > 0 and values(source) == once
    assert "held already" in cli("migrate", "hold", "--partitions", 3).out
    assert cli("migrate", "release").code == 0
    released = values(source)
    del source.logs[JOURNAL.name][1][-1]
    found = cli("migrate", "release", "--json").document
    assert [log[:-1] for log in values(source)] == [log[:-1] for log in released] == once
    assert found["records"] == sum(len(log) - 2 for log in released)
    refused = cli("migrate", "hold", "--partitions", 3)
    assert refused.code == 1 and "was released" in refused.err
    assert import_into(source, *things)["appended"] == 0
    for log in source.logs[JOURNAL.name]:
        view = PartitionView(DomainModel())
        for record in log:
            assert view.next_offset < max(view.whole_at, 1), "before the last record no service may begin"
            view.fold(decode_record(record.value or b""), record.offset, record.at)
        assert view.next_offset == view.whole_at


def test_an_import_of_something_else_is_refused(cli: Cli, source: MemorySource) -> None:
    assert cli("migrate", "hold", "--partitions", 1).code == 0
    import_into(source, GrowingStream("st").stream())
    for things in ([GrowingStream("st", 2).stream()], []):
        with pytest.raises(CommandError, match="record"):
            import_into(source, *things)


def test_a_thing_that_is_not_as_it_says_stops_the_import_unless_it_is_left_out(cli: Cli, source: MemorySource) -> None:
    assert cli("migrate", "hold", "--partitions", 1).code == 0
    before, lying = values(source), GrowingStream("lies")
    lying.fields["current_epoch"] = 3
    with pytest.raises(RefusedError, match="sc/lies: epochRecord-1"):
        import_into(source, lying.stream())
    assert values(source) == before
    assert import_into(source, lying.stream(), left_out=("stream sc/lies",))["streams"] == 0


def test_a_dump_that_was_not_the_same_when_read_again_is_refused(
    cli: Cli, source: MemorySource, tmp_path: Path
) -> None:
    original = Original()
    del original.nodes.all[CONTROLLER]
    asyncio.run(original.fill())
    assert cli("migrate", "hold", "--partitions", 1).code == 0
    before = values(source)
    for changed in (True, False):
        asyncio.run(dump(original.source(), tmp_path, 1, lambda: T, unseen))
        found = cli("migrate", "import", tmp_path)
        assert (found.code == 1) is ("changed between" in found.err) is (values(source) == before) is changed


def test_a_dump_that_was_made_while_a_controller_was_registered_is_refused(
    cli: Cli, source: MemorySource, tmp_path: Path
) -> None:
    original = Original()
    asyncio.run(original.fill())
    asyncio.run(dump(original.source(), tmp_path, 2, lambda: T, unseen))
    assert cli("migrate", "hold", "--partitions", 1).code == 0
    before = values(source)
    refused = cli("migrate", "import", tmp_path)
    assert refused.code == 1 and "controllers were registered" in refused.err and values(source) == before
    del original.nodes.all[CONTROLLER]
    asyncio.run(dump(original.source(), tmp_path, 2, lambda: T, unseen))
    assert cli("migrate", "import", tmp_path).code == 0


def test_an_import_into_a_journal_that_was_released_empty_is_refused(cli: Cli, source: MemorySource) -> None:
    cli("migrate", "hold", "--partitions", 1)
    cli("migrate", "release", "--empty")
    with pytest.raises(RefusedError, match="was released"):
        import_into(source, GrowingStream("st").stream())
