"""Jobs about the past find what a whole fold finds, however they are bounded and wherever they begin."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from unit.cli.memory import PARTITIONS, History, MemorySource
from unit.cli.snapshots import snapshot_of
from unit.lookback.recorded import limit

from sluice.domain.config import StreamConfig
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream, DeleteStream, ScaleStream, SealStream
from sluice.engine.partition import partition_of
from sluice.kafka.topics import JOURNAL
from sluice.lookback import backwards, jobs, tracing_job
from sluice.lookback.describing import STREAM, ResourceQuestion
from sluice.lookback.errors import LookbackError, TimeIsOverError
from sluice.lookback.folded import FoldedPartitions
from sluice.lookback.jobs import run_job
from sluice.lookback.progress import unseen
from sluice.lookback.searching import JOURNAL_SEARCH, FoundEvent, FoundEvents, SearchQuestion
from sluice.lookback.source import KafkaRecord, Span
from sluice.lookback.tracing import document, trace
from sluice.lookback.tracing_job import TRACE, TraceQuestion

KEY = "demo/orders"
PARTITION = partition_of(KEY, PARTITIONS)


@pytest.fixture
def history() -> History:
    """`demo/orders`, which is scaled and sealed, and thirty more streams."""
    found = History()
    found.create_stream(StreamConfig())
    for number in range(30):
        found.ask(CreateStream("demo", f"s{number}", StreamConfig()), f"create-{number}")
        found.finish_create("demo", f"s{number}", f"create-{number}")
    found.ask(ScaleStream("demo", "orders", seals=(0,), ranges=((0.0, 0.5), (0.5, 1.0)), at=1), "scale")
    found.finish_scale("demo", "orders")
    found.ask(SealStream("demo", "orders"), "seal")
    found.finish_seal("demo", "orders", "seal")
    return found


class Counted(MemorySource):
    """Topics of another source; `read_records` are those of the journal that were read."""

    def __init__(self, source: MemorySource) -> None:
        self.__dict__.update(source.__dict__)
        self.read_records = 0

    def read(self, spans: Sequence[Span]) -> Iterator[KafkaRecord | Span]:
        for item in super().read(spans):
            self.read_records += isinstance(item, KafkaRecord) and item.topic == JOURNAL.name
            yield item


def search(
    history: History, wanted: SearchQuestion, folded: FoldedPartitions | None = None, looks: int = 10**6
) -> FoundEvents:
    return run_job(JOURNAL_SEARCH, wanted, history.source, history.now, folded, limit(looks))


def all_pages(history: History, looks: int = 10**6, **submitted: Any) -> list[FoundEvent]:
    """Following `next` to the end; what is kept is kept from call to call."""
    folded, items, before = FoldedPartitions(), list[FoundEvent](), None
    for _ in range(2_000):
        found = search(history, SearchQuestion(before=before, **submitted), folded, looks)
        items += found.items
        if found.complete:
            assert found.next is None
            return items
        assert found.next is not None
        before = found.next
    raise AssertionError("it never ends")


def test_small_windows_and_little_time_find_what_one_search_finds(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = search(history, SearchQuestion(limit=1000))
    assert whole.complete and len(whole.items) > 60
    assert [one.order for one in whole.items] == sorted((one.order for one in whole.items), reverse=True)
    assert all_pages(history, limit=7) == whole.items
    monkeypatch.setattr(backwards, "MAX_RECORDS", 8)
    monkeypatch.setattr(backwards, "FIRST_RECORDS", 4)
    assert all_pages(history, limit=1000) == whole.items
    assert all_pages(history, limit=1000, looks=60) == whole.items
    assert all_pages(history, limit=1000, key="scope:demo") == [o for o in whole.items if o.aggregate == "scope:demo"]


def test_an_event_that_did_not_count_says_why(history: History) -> None:
    history.twin(KEY, decides=False)
    latest = search(history, SearchQuestion(key=KEY, limit=2)).items
    assert [(one.type, one.why) for one in latest] == [("StreamSealed", "stale"), ("StreamSealed", "")]


def test_a_description_that_takes_too_long_comes_further_each_time(history: History) -> None:
    submitted, folded = ResourceQuestion("demo", "orders", history.now), FoldedPartitions()
    wanted = run_job(STREAM, submitted, history.source, history.now)
    came = []
    while True:
        try:
            found = run_job(STREAM, submitted, history.source, history.now, folded, limit(6))
            break
        except TimeIsOverError as error:
            came.append(str(error))
    assert found == wanted and len(came) > 2 and len(set(came)) == len(came)


def test_a_moment_that_is_kept_reads_nothing(history: History) -> None:
    folded, source = FoldedPartitions(), Counted(history.source)
    submitted = ResourceQuestion("demo", "orders", history.now)
    first = run_job(STREAM, submitted, source, history.now, folded)
    whole, source.read_records = source.read_records, 0
    assert run_job(STREAM, submitted, source, history.now, folded) == first and source.read_records == 0 < whole


async def test_a_snapshot_spares_the_records_before_it(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    before = history.now
    manifest = await snapshot_of(history, KEY)
    await snapshot_of(history, KEY)
    submitted, source = ResourceQuestion("demo", "orders", manifest.at), Counted(history.source)
    wanted = run_job(STREAM, submitted, source, history.now)
    source.read_records = 0
    later = ResourceQuestion("demo", "orders", manifest.at + 1)
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "WORTH_A_SNAPSHOT", 1)
        found = await asyncio.to_thread(run_job, STREAM, later, source, history.now)
    assert source.read_records <= 3
    assert replace(found, at=None, as_of=None) == replace(wanted, at=None, as_of=None)
    history.source.trim(JOURNAL.name, PARTITION, manifest.offset)
    assert (await asyncio.to_thread(run_job, STREAM, later, history.source, history.now)) == found
    with pytest.raises(LookbackError, match="they were trimmed"):
        await asyncio.to_thread(
            run_job, STREAM, ResourceQuestion("demo", "orders", before), history.source, history.now
        )


async def test_a_search_of_a_trimmed_journal_goes_back_to_the_oldest_snapshot(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await snapshot_of(history, KEY)
    history.ask(DeleteStream("demo", "orders"), "late")
    wanted = SearchQuestion(key=KEY, limit=1000)
    whole = await asyncio.to_thread(search, history, wanted)
    history.source.trim(JOURNAL.name, PARTITION, manifest.offset - 2)
    monkeypatch.setattr(backwards, "FIRST_RECORDS", 1)
    found = await asyncio.to_thread(search, history, wanted)
    assert found.items == [one for one in whole.items if one.order[2] > manifest.offset] != []
    assert found.complete and found.kept_from == manifest.at + 1, "of that moment more may be missing"
    later = await asyncio.to_thread(search, history, SearchQuestion(key=KEY, from_ms=manifest.at + 2, limit=1000))
    assert later.complete and later.kept_from is None


async def test_a_trimmed_partition_does_not_hold_up_the_search_of_the_others(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = await snapshot_of(history, KEY)
    history.ask(DeleteStream("demo", "orders"), "late")
    whole = await asyncio.to_thread(all_pages, history, limit=1000)
    history.source.trim(JOURNAL.name, PARTITION, manifest.offset - 2)
    monkeypatch.setattr(backwards, "FIRST_RECORDS", 4)
    monkeypatch.setattr(backwards, "MAX_RECORDS", 12)
    found = await asyncio.to_thread(all_pages, history, limit=3)
    assert found == [one for one in whole if one.order[1] != PARTITION or one.order[2] > manifest.offset]


def test_the_trace_is_that_of_the_command_line(history: History) -> None:
    for request in ("create", "scale", "seal", "create-7", "scope", "none"):
        found = run_job(TRACE, TraceQuestion(request, 0), history.source, history.now)
        assert found.document == document(trace(history.source, request, 0, unseen)), request
        assert found.complete and len(found.steps) == len(found.document["steps"])
        assert request == "none" or all(found.steps)


def test_a_request_is_searched_backwards_up_to_where_it_was_sent(history: History) -> None:
    sent_after = history.now
    history.ask(CreateScope("late"), "late")
    history.source.now += 3 * 3_600_000
    submitted = TraceQuestion("late", history.now - 3_600_000)
    recent = run_job(TRACE, submitted, history.source, history.now)
    assert (recent.document["steps"], recent.complete, recent.searched_to) == ([], True, submitted.since_ms)
    source = Counted(history.source)
    found = run_job(TRACE, TraceQuestion("late", 0, recent.searched_to), source, history.now)
    assert [step["what"] for step in found.document["steps"]] == ["requested", "answered"]
    assert found.complete and found.searched_to > sent_after - 6 * 3_600_000


@pytest.mark.parametrize("bound", ["MAX_STEPS", "MAX_BYTES"])
def test_of_a_history_that_is_too_long_the_first_steps_are_shown(
    history: History, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    whole = run_job(TRACE, TraceQuestion("create", 0), history.source, history.now)
    monkeypatch.setattr(tracing_job, bound, 1)
    found = run_job(TRACE, TraceQuestion("create", 0), history.source, history.now)
    steps = found.document["steps"]
    assert 0 < len(steps) < len(whole.document["steps"]) and len(found.steps) == len(steps) and not found.complete


def test_what_is_kept_is_bounded_in_size_and_in_time(history: History) -> None:
    now = 0.0
    views = [history.views[partition] for partition in range(3)]
    sizes = FoldedPartitions(clock=lambda: now)
    for number, view in enumerate(views):
        sizes.keep(("id", number), view)
    folded = FoldedPartitions(max_bytes=sizes.bytes - 1, kept_s=10, clock=lambda: now)
    for number, view in enumerate(views):
        now += 1
        assert folded.keep(("id", number), view)
    assert folded.bytes < sizes.bytes
    assert folded.nearest(("id", 0), 10**6).next_offset == 0, "the oldest went"
    present = folded.nearest(("id", 2), 10**6)
    assert present.next_offset == views[2].next_offset and list(present.capture()) == list(views[2].capture())
    assert folded.nearest(("id", 2), views[2].next_offset - 1).next_offset == 0
    assert folded.nearest(("other", 2), 10**6).next_offset == 0
    now += 11
    assert folded.nearest(("id", 2), 10**6).next_offset == 0 and folded.bytes == 0
    assert not FoldedPartitions(max_bytes=10).keep(("id", 0), views[0])
