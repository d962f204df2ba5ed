"""The history as operators read it, from files as batches leave them and as they are joined."""

import shutil
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from retention_spark import compaction, joining
from retention_spark.compaction import compact
from retention_spark.decisions import main
from retention_spark.files import DamagedFileError
from retention_spark.history import decisions_since, last_decisions, line_of
from retention_spark.joining import MANY
from sluice.domain.stream.commands import DecisionKind
from sluice.policies.reported import HistoryRow

DAY = "2023-11-14"
AT = 1_700_000_000_000
KEPT_DAYS = 100 * 365
SESSION: Any = None
TORN = b"PAR1"


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's file system is that of this machine."""

    def listed(folder: str) -> list[Path]:
        return list(Path(folder).iterdir())

    def read(_: Any, folder: str, name: str) -> bytes:
        found = Path(folder, name).read_bytes()
        if found == TORN:
            raise DamagedFileError("Checksum error")
        return found

    def remove(_: Any, folder: str, name: str) -> None:
        path = Path(folder, name)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    double: dict[str, Any] = {
        "names": lambda _, folder: [path.name for path in listed(folder)],
        "sizes": lambda _, folder: {path.name: path.stat().st_size for path in listed(folder) if path.is_file()},
        "read": read,
        "write_once": lambda _, folder, name, value: Path(folder, name).write_bytes(value),
        "rename": lambda _, folder, name, other: Path(folder, name).rename(Path(folder, other)),
        "remove": remove,
    }
    for module in (compaction, joining):
        for name in double.keys() & vars(module).keys():
            monkeypatch.setattr(module, name, double[name])


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.glob("*/*/*"))


def row(number: int, **changes: Any) -> HistoryRow:
    made = HistoryRow(f"id{number}", "scale", AT + number, "s", "st", "steady", f"reason {number}", "", "")
    return msgspec.structs.replace(made, **changes)


def keep(folder: Path, name: str, *rows: HistoryRow, day: str = DAY) -> None:
    """Write rows as a batch does: the columns of the folders are not in the file."""
    leaf = folder / f"kind={rows[0].kind}" / f"day={day}"
    leaf.mkdir(parents=True, exist_ok=True)
    values = [{k: v for k, v in msgspec.structs.asdict(r).items() if k != "kind"} for r in rows]
    pq.write_table(pa.Table.from_pylist(values), leaf / f"{name}.parquet")


def test_the_last_ones_of_a_stream_by_time(tmp_path: Path) -> None:
    keep(tmp_path, "b", row(3), row(1))
    keep(tmp_path, "a", row(2, kind="retention"))
    keep(tmp_path, "c", row(9, stream="other"), row(8, scope="t"))
    assert [r.id for r in last_decisions(str(tmp_path), "s", "st", 10)] == ["id1", "id2", "id3"]
    assert [r.kind for r in last_decisions(str(tmp_path), "s", "st", 2)] == ["retention", "scale"]


def test_what_a_batch_wrote_twice_is_there_once(tmp_path: Path) -> None:
    keep(tmp_path, "a", row(1))
    keep(tmp_path, "b", row(1), row(2))
    assert [r.id for r in last_decisions(str(tmp_path), "s", "st", 10)] == ["id1", "id2"]


def test_days_are_read_back_only_as_far_as_needed(tmp_path: Path) -> None:
    keep(tmp_path, "a", row(1), day="2023-11-14")
    keep(tmp_path, "a", row(5), row(6), day="2023-11-15")
    keep(tmp_path, "b", row(7), day="2023-11-14")
    assert [r.id for r in last_decisions(str(tmp_path), "s", "st", 2)] == ["id5", "id6"], "the older day is not read"


def test_a_file_that_cannot_be_read_hides_no_other(tmp_path: Path) -> None:
    keep(tmp_path, "a", row(1))
    (tmp_path / "kind=scale" / f"day={DAY}" / "broken.parquet").write_text("no parquet")
    assert [r.id for r in last_decisions(str(tmp_path), "s", "st", 2)] == ["id1"]


def test_what_was_decided_at_once_stays_in_its_order(tmp_path: Path) -> None:
    keep(tmp_path, "a", *(row(0, id=id) for id in "cab"))
    assert [r.id for r in last_decisions(str(tmp_path), "s", "st", 10)] == ["c", "a", "b"]


def test_all_decisions_of_a_kind_since_a_time(tmp_path: Path) -> None:
    keep(tmp_path, "a", *(row(number) for number in range(1500)))
    keep(tmp_path, "b", *(row(number, kind="retention") for number in range(1500)))
    found = decisions_since(str(tmp_path), "s", "st", DecisionKind.SCALE, AT + 200)
    assert [r.id for r in found] == [f"id{number}" for number in range(200, 1500)]
    assert decisions_since(str(tmp_path), "s", "st", DecisionKind.SCALE, AT + 48 * 3_600_000) == []


@pytest.mark.usefixtures("local")
def test_files_are_joined_once_they_are_many(tmp_path: Path) -> None:
    for number in range(MANY - 1):
        keep(tmp_path, f"part{number}", row(number))
    few = names_in(tmp_path)
    compact(SESSION, str(tmp_path), KEPT_DAYS)
    assert names_in(tmp_path) == few
    keep(tmp_path, "last", row(MANY))
    before = last_decisions(str(tmp_path), "s", "st", 100)
    compact(SESSION, str(tmp_path), KEPT_DAYS)
    assert [name.split("-")[0] for name in names_in(tmp_path)] == ["joined"]
    assert last_decisions(str(tmp_path), "s", "st", 100) == before


@pytest.mark.usefixtures("local")
def test_joined_files_stay_small_enough_for_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3 * MANY):
        keep(tmp_path, f"part{number:03}", row(number))
    size = max(file.stat().st_size for file in tmp_path.glob("*/*/*"))
    monkeypatch.setattr(joining, "JOINED_BYTES", 2 * MANY * size)
    before = last_decisions(str(tmp_path), "s", "st", 100)
    compact(SESSION, str(tmp_path), KEPT_DAYS)
    assert [name.split("-")[0] for name in names_in(tmp_path)] == ["joined", "joined"]
    assert last_decisions(str(tmp_path), "s", "st", 100) == before


@pytest.mark.usefixtures("local")
@pytest.mark.parametrize("content", [b"no parquet", TORN])
def test_a_file_that_cannot_be_read_is_set_aside_and_the_others_are_joined(tmp_path: Path, content: bytes) -> None:
    for number in range(MANY):
        keep(tmp_path, f"part{number}", row(number))
    (tmp_path / "kind=scale" / f"day={DAY}" / "broken.parquet").write_bytes(content)
    before = last_decisions(str(tmp_path), "s", "st", 100)
    for _ in range(2):
        compact(SESSION, str(tmp_path), KEPT_DAYS)
    aside, joined = names_in(tmp_path)
    assert aside == "broken.parquet.unreadable" and joined.startswith("joined-")
    assert last_decisions(str(tmp_path), "s", "st", 100) == before


@pytest.mark.usefixtures("local")
def test_days_of_long_ago_are_dropped(tmp_path: Path) -> None:
    keep(tmp_path, "a", row(1), day="2023-11-13")
    keep(tmp_path, "a", row(2), day="2023-11-14")
    compact(SESSION, str(tmp_path), 1, lambda: AT / 1000 + 24 * 3600)
    assert [leaf.name for leaf in tmp_path.glob("*/*")] == ["day=2023-11-14"]


def test_how_it_is_printed(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("SLUICE_SPARK_HISTORY", str(tmp_path))
    keep(tmp_path, "a", row(1))
    assert line_of(row(1)) == "2023-11-14 22:13:20  scale      steady            reason 1"
    assert main(["s/st"]) == 0
    assert capsys.readouterr().out == line_of(row(1)) + "\n"
    assert main(["s/none"]) == 0 and "nothing was decided on s/none" in capsys.readouterr().out
    assert main(["st"]) == 2
