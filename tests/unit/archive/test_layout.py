"""Files' names say what they hold, and each record is read once whatever files there are."""

from hypothesis import given
from hypothesis import strategies as st

from sluice.archive.layout import ArchiveFile, file_of, pieces

DAY = "2026-01-31"


def file(start: int, end: int, partition: int = 0) -> ArchiveFile:
    return ArchiveFile(partition, start, end, DAY)


def test_a_name_says_what_the_file_holds() -> None:
    one = file(12, 3_000_000_000_000, 17)
    assert one.path == "day=2026-01-31/00017-00000000000000000012-00000003000000000000.parquet"
    assert file_of(DAY, one.name) == one


def test_what_is_unfinished_or_not_ours_is_no_file() -> None:
    names = [f".{file(0, 1).name}.unfinished", "_SUCCESS", "part-00000.parquet", f"{file(0, 1).name}.crc"]
    assert [file_of(DAY, name) for name in names] == [None] * 4


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 10)), max_size=12),
    st.integers(0, 40),
    st.integers(0, 40),
)
def test_each_offset_in_a_file_is_read_once_and_in_order(spans: list[tuple[int, int]], start: int, end: int) -> None:
    files = [file(begin, begin + length) for begin, length in spans]
    found = list(pieces(files, start, end))
    offsets = [offset for piece in found for offset in range(piece.start, piece.end)]
    there = {offset for one in files for offset in range(one.start, one.end)}
    assert offsets == sorted(there & set(range(start, end)))
    assert all(piece.file.start <= piece.start < piece.end <= piece.file.end for piece in found)
