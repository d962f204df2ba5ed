"""A folder into a stream, by nodes in this process: every line once, on and on, over stops, failures and lost files."""

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from unit.ingest.world import SOON_S, World

from distributed_ingest.folder import Folder
from distributed_ingest.tree import Tree
from distributed_ingest.windows import Named
from harness import eventually_async
from sluice_coordination import Document, StoreUnavailableError, Version
from sluice_coordination.document import Body
from sluice_coordination.memory import MemoryStore
from sluice_coordination.task import new_body

WHOLE = 100_000
"""Bytes of a window that holds all there is."""


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("distributed_ingest.folder.BATCH_BYTES", 64)


def folder(world: World, root: Path, *, once: bool = False, window_bytes: int = 200) -> Folder:
    return Folder(
        world.scene(once=once), root, "*", window_bytes=window_bytes, ahead=4, scan_s=0.02, settle_s=0.05
    )  # fmt: skip


def write(root: Path, files: int, lines: int) -> list[str]:
    """Files with lines of random length; return all lines."""
    source, written = random.Random(files * lines), []
    for number in range(files):
        path = root / f"sub{number % 2}" / f"{number}.log"
        path.parent.mkdir(exist_ok=True)
        texts = [f"{number}-{line} " + "x" * source.randrange(40) for line in range(lines)]
        path.write_text("".join(f"{text}\n" for text in texts))
        written += texts
    return written


def write_log(path: Path, text: str, lines: int) -> list[str]:
    """A file with so many lines; return them."""
    texts = [f"{text} {number}" for number in range(lines)]
    path.write_text("".join(f"{each}\n" for each in texts))
    return texts


async def cut_now(feed: Folder) -> None:
    """Have the only window cut now; it is copied when a node runs."""
    await feed.open()
    window = await eventually_async(lambda: feed.next_window(None), SOON_S, "there is one")

    async def given(position: object) -> object:
        return window if position is None else None

    feed.next_window = given  # type: ignore[method-assign, assignment]


async def test_every_line_once_and_nothing_when_repeated(world: World, tmp_path: Path) -> None:
    lines = write(tmp_path, 7, 40)
    for _ in range(2):
        await world.run_to_completion(folder(world, tmp_path, once=True))
        assert Counter(world.sink.texts) == Counter(lines)
    assert world.tally.total.records == len(lines)
    assert world.tally.total.bytes == sum(map(len, lines))
    assert world.tally.by_origin["sub1/3.log"].records == 40


async def test_two_nodes_share(world: World, tmp_path: Path) -> None:
    lines = write(tmp_path, 5, 100)
    one, two = folder(world, tmp_path, once=True), folder(world, tmp_path, once=True)
    async with world.node(one), world.node(two):
        await world.until_finished(one)
        await world.until_finished(two)
    assert Counter(world.sink.texts) == Counter(lines)


async def test_it_follows_what_is_added(world: World, tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("one\ntw")
    feed = folder(world, tmp_path)
    async with world.node(feed):
        await world.until(lambda: world.sink.texts == ["one"], "the first line is there")
        with path.open("a") as file:
            file.write("o\r\nthree\n")
        await world.until(lambda: world.sink.texts == ["one", "two", "three"], "lines follow when they end")
        path.rename(tmp_path / "a.log.1")
        path.write_text("four\n")
        await world.until(lambda: world.sink.texts[3:] == ["four"], "a new file is found")
        await world.until_finished(feed)
        reach = await world.reach(feed)
        assert (reach.done, reach.total) == (20, 20)


async def test_the_rest_of_a_file_counts_at_the_end_alone(world: World, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\ntwo")
    await world.run_to_completion(folder(world, tmp_path, once=True))
    assert world.sink.texts == ["one", "two"]


async def test_stopped_in_the_middle_of_a_batch_it_goes_on_behind_it(world: World, tmp_path: Path) -> None:
    lines = write(tmp_path, 3, 100)
    world.sink.open.clear()
    feed = folder(world, tmp_path, once=True, window_bytes=WHOLE)
    async with world.node(feed):
        await world.until(lambda: world.sink.writes > 0, "a batch is on its way")
        # The node has to stop while the stream is slow; what was begun comes to its end when it is quick again.
        asyncio.get_running_loop().call_later(0.2, world.sink.open.set)
    assert world.sink.texts, "the batch was finished"
    await world.run_to_completion(folder(world, tmp_path, once=True, window_bytes=WHOLE))
    assert Counter(world.sink.texts) == Counter(lines)


@pytest.mark.usefixtures("small_batches")
async def test_a_window_goes_on_where_its_last_note_is(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream stops taking anything within a window: what was noted is not written again, the rest is."""
    monkeypatch.setattr("distributed_ingest.settle.LONGEST_S", 0.1)
    world.sink.closes_after = 5
    lines = write_log(tmp_path / "a", "line", 100)
    feed = folder(world, tmp_path, once=True, window_bytes=WHOLE)
    async with world.node(feed):
        await world.until(lambda: world.sink.writes == 6, "a batch waits")
    assert 20 < len(world.sink.texts) < 60
    reach, recorded = await world.reach(feed), sum(len(text) + 1 for text in world.sink.texts)
    assert (reach.done, reach.finished) == (recorded, False)
    world.sink.open.set()
    await world.run_to_completion(folder(world, tmp_path, once=True, window_bytes=WHOLE))
    assert world.sink.texts == lines


@pytest.mark.usefixtures("small_batches")
async def test_a_window_that_failed_goes_on_where_its_last_note_is(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream is away for longer than a batch is tried again: the task fails and is begun anew by the leader."""
    monkeypatch.setattr("sluice_coordination.task._FIRST_PAUSE_S", 0.01)
    world.sink.closes_after = 5
    lines = write_log(tmp_path / "a", "line", 100)
    feed = folder(world, tmp_path, once=True, window_bytes=WHOLE)
    async with world.node(feed):
        await world.until(lambda: world.sink.writes == 6, "some batches are noted, the next one waits")
        world.sink.fails = 3
        world.sink.open.set()
        await world.until_finished(feed)
    assert world.sink.fails == 0 and world.sink.texts == lines


@pytest.mark.usefixtures("small_batches")
async def test_a_store_that_is_away_for_a_moment_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the position where a window goes on nor a note of it: both calls are repeated."""
    monkeypatch.setattr("distributed_ingest.patience.ASK_AGAIN_S", 0.001)
    store = Moody()
    world = World(store=store)
    lines = write_log(tmp_path / "a", "line", 100)
    world.sink.closes_after = 5
    feed = folder(world, tmp_path, once=True, window_bytes=WHOLE)
    async with world.node(feed):
        await world.until(lambda: world.sink.writes == 6, "a batch waits")
        world.sink.open.set()
        await world.until_finished(feed)
    assert world.sink.texts == lines
    assert store.failed_gets == 1 and not store.failed_tasks
    assert store.reached == sorted(store.reached) and len(store.reached) >= 10


class Moody(MemoryStore):
    """Gives no answer to the first look at a window's task, nor to every third note in it. `reached`: notes made."""

    def __init__(self) -> None:
        super().__init__()
        self.failed_gets = 0
        self.failed_tasks = 0
        self.notes = 0
        self.reached: list[list[int]] = []

    async def get(self, id: str) -> Document | None:
        if "/part/" in id and not self.failed_gets:
            self.failed_gets += 1
            raise StoreUnavailableError("no answer")
        return await super().get(id)

    async def put(self, id: str, body: Body, expected: Version | None) -> Version:
        self.failed_tasks += "error" in body.get("outcome", {})
        reached = body.get("reached", [])
        if reached and reached not in self.reached:
            self.notes += 1
            if self.notes % 3 == 1:
                raise StoreUnavailableError("no answer")
            self.reached.append(reached)
        return await super().put(id, body, expected)


async def test_a_stream_that_is_away_is_tried_again(world: World, tmp_path: Path) -> None:
    lines = write(tmp_path, 1, 10)
    world.sink.fails = 2
    await world.run_to_completion(folder(world, tmp_path, once=True))
    assert Counter(world.sink.texts) == Counter(lines)
    assert list(world.tally.problems) == ["writing failed: the stream is away"]


async def test_a_file_that_is_gone_before_its_turn_is_reported_and_counted(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributed_ingest.folder.PAUSES_S", (0.01,) * 5)
    lines = write(tmp_path, 1, 1)
    (tmp_path / "gone").write_text("x\n")
    feed = folder(world, tmp_path, once=True)
    await cut_now(feed)
    (tmp_path / "gone").unlink()
    async with world.node(feed):
        await world.until(lambda: world.tally.total.skipped == 1, "it is given up after some searches")
        await world.until(lambda: world.sink.texts == lines, "the rest of the window is there")
    assert "gone: bytes 0 to 2 are not in the stream" in world.tally.problems[-1]


async def test_a_file_that_is_gone_after_it_was_copied_is_not_reported(world: World, tmp_path: Path) -> None:
    """Its task was stopped between the last note and its end, and is begun anew."""
    (tmp_path / "gone").write_text("x\n")
    feed = folder(world, tmp_path, once=True)
    await cut_now(feed)
    window = await feed.next_window(None)
    assert window is not None
    part = f"ingest/job/board/part/{feed.source().name}/000000000000"
    await world.store.put(part, {**new_body(window.task), "reached": [0, 2]}, None)
    (tmp_path / "gone").unlink()

    async def through() -> bool:
        return await world.store.get(part) is None

    async with world.node(feed):
        await eventually_async(through, SOON_S, "the task is done and removed")
    assert world.sink.events == [] and not world.tally.problems and world.tally.total.skipped == 0


async def test_a_file_renamed_before_its_turn_is_found(world: World, tmp_path: Path) -> None:
    lines = write(tmp_path, 1, 5)
    feed = folder(world, tmp_path, once=True)
    await cut_now(feed)
    (tmp_path / "sub0" / "0.log").rename(tmp_path / "elsewhere")
    async with world.node(feed):
        await world.until(lambda: world.sink.texts == lines, "it is read under its new name")
    assert world.tally.total.skipped == 0


async def test_another_file_with_the_same_beginning_is_not_read_instead(world: World, tmp_path: Path) -> None:
    """A log with a header is rotated before its window's turn: what is copied is the old one, under its new name."""
    header = f"# {'header ' * 200}\n"
    (tmp_path / "log").write_text(f"{header}old 1\nold 2\n")
    feed = folder(world, tmp_path, once=True, window_bytes=WHOLE)
    await cut_now(feed)
    (tmp_path / "log").rename(tmp_path / "log.1")
    (tmp_path / "log").write_text(f"{header}new 1\nnew 2\nnew 3\n")
    async with world.node(feed):
        await world.until(lambda: len(world.sink.texts) == 3, "the window is through")
    assert world.sink.texts[1:] == ["old 1", "old 2"]


@pytest.mark.usefixtures("small_batches")
async def test_a_file_cut_off_and_grown_again_while_it_is_copied_is_read_anew(world: World, tmp_path: Path) -> None:
    """As copytruncate does it: what was not read of the old lines is reported, the new ones are all there."""
    header = f"# {'header ' * 200}"
    world.sink.closes_after = 5
    (tmp_path / "log").write_text("".join(f"{line}\n" for line in [header, *(f"old {n}" for n in range(100))]))
    feed = folder(world, tmp_path, window_bytes=WHOLE)
    async with world.node(feed):
        await world.until(lambda: world.sink.writes == 6, "a batch waits")
        new = [header, *(f"new {n}" for n in range(200))]
        (tmp_path / "log").write_text("".join(f"{line}\n" for line in new))
        world.sink.open.set()
        await world.until(lambda: "new 199" in world.sink.texts and world.tally.total.skipped == 1, "both are through")
    assert Counter(text for text in world.sink.texts if text[:3] == "new") == Counter(new[1:])
    assert "are not in the stream" in world.tally.problems[0]


async def test_a_whole_file_that_grows_before_its_turn_is_no_event_of_its_beginning(tmp_path: Path) -> None:
    world = World(records="whole", key="source")
    (tmp_path / "a").write_text("x" * 2_000)
    feed = folder(world, tmp_path)
    await cut_now(feed)
    (tmp_path / "a").write_text("x" * 3_000)
    async with world.node(feed):
        await world.until(lambda: world.tally.total.skipped == 1, "the window is through")
    assert world.sink.events == []
    assert "bytes 0 to 2000 are not in the stream" in world.tally.problems[0]


@pytest.mark.usefixtures("small_batches")
async def test_a_file_rotated_while_it_is_copied_is_gone_on_with(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributed_ingest.folder.PAUSES_S", (0.01,) * 5)
    world.sink.closes_after = 5
    old = write_log(tmp_path / "log", "old", 100)
    feed = folder(world, tmp_path, window_bytes=WHOLE)
    async with world.node(feed):
        await world.until(lambda: world.sink.writes == 6, "a batch waits")
        (tmp_path / "log").rename(tmp_path / "log.1")
        new = write_log(tmp_path / "log", "new", 200)
        world.sink.open.set()
        await world.until(lambda: len(world.sink.texts) >= 300, "both are through")
    # Two workers: the new file is copied beside the rest of the old one.
    assert [text for text in world.sink.texts if text[:3] == "old"] == old
    assert [text for text in world.sink.texts if text[:3] == "new"] == new
    assert world.tally.total.skipped == 0


async def test_an_unreadable_file_is_reported_and_counts_as_skipped_at_the_end(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_text("one\n")
    (tmp_path / "closed").write_text("two\n")
    opened, closed = Tree.open, {"closed"}

    def refuse(self: Tree, file: Named) -> object:
        if file.path in closed:
            raise PermissionError(13, "Permission denied")
        return opened(self, file)

    monkeypatch.setattr(Tree, "open", refuse)
    await world.run_to_completion(folder(world, tmp_path, once=True))
    assert world.sink.texts == ["one"] and world.tally.total.skipped == 1
    assert list(world.tally.problems) == ["closed is left out: cannot be read: Permission denied"]
    world.tally.problems.clear()
    on = folder(world, tmp_path)
    async with world.node(on):
        await world.until(lambda: bool(world.tally.problems), "it is reported")
        closed.clear()
        await world.until(lambda: world.sink.texts == ["one", "two"], "it is read as soon as that is possible")
    assert world.tally.total.skipped == 1


async def test_whole_files(tmp_path: Path) -> None:
    world = World(records="whole", key="source")
    (tmp_path / "a").write_text("one\ntwo")
    (tmp_path / "b").write_bytes(b"\x00\xff")
    (tmp_path / "empty").touch()
    (tmp_path / "large").write_bytes(b"x" * (8 * 1024 * 1024))
    feed = folder(world, tmp_path)
    async with world.node(feed):
        await world.until(lambda: len(world.sink.events) == 2 and world.tally.total.skipped == 1, "all are through")
        await world.until_finished(feed)
    assert sorted(world.sink.events) == [(b"\x00\xff", "b"), (b"one\ntwo", "a")]
    assert "large: the file has more than" in world.tally.problems[0]


async def test_lines_too_long_are_left_out_and_reported(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distributed_ingest.folder.BATCH_BYTES", 1 << 20)
    (tmp_path / "a").write_bytes(b"one\n" + b"x" * (8 * 1024 * 1024) + b"\ntwo\n")
    await world.run_to_completion(folder(world, tmp_path, once=True))
    assert sorted(world.sink.texts) == ["one", "two"]
    assert world.tally.total.skipped == 1 and "a line before byte" in world.tally.problems[0]
