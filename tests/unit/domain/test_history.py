"""A stream whose past is condensed answers as one does that keeps all of it as it was.

Both fold the same events, but one of them without the truncations: nothing is behind its head, and nothing condensed.
"""

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.domain_log import Log
from support.histories import epochs_of, sealed_in, segments_of
from support.stream_log import STREAM
from support.txn_log import TxnLog

from sluice.domain.cut_order import Cut
from sluice.domain.errors import InvalidArgumentError, NotFoundError
from sluice.domain.events import Event
from sluice.domain.segment import epoch_of, number_of, segment_id
from sluice.domain.stream import cuts, history, queries, retention, scale, watermark
from sluice.domain.stream.commands import NoteWriterTime
from sluice.domain.stream.events import StreamTruncated, StreamTruncationStarted
from sluice.domain.stream.state import Stream, find_stream
from sluice.domain.transaction.state import segment_names, segments_to_write

CHUNK = 3


@pytest.fixture(autouse=True, scope="module")
def small_chunks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "CHUNK_EPOCHS", CHUNK)
        yield


def size_of(segment: int) -> int:
    return 100 + number_of(segment)


class Twins(TxnLog):
    """A stream that is scaled, rolled and truncated at random; `whole` is the same one, never truncated."""

    def __init__(self, random: Random) -> None:
        self.whole_log = Log()
        self.random = random
        self.open_transactions: list[str] = []
        super().__init__(segments=1)

    def fold(self, *events: Event, timestamp_ms: int = 0) -> None:
        super().fold(*events)
        kept = [e for e in events if not isinstance(e, StreamTruncationStarted | StreamTruncated)]
        if kept:
            self.whole_log.fold(*kept)

    @property
    def whole(self) -> Stream:
        stream = find_stream(self.whole_log, STREAM)
        assert stream is not None
        return stream

    def live(self, steps: int) -> None:
        acts: list[Callable[[], Any]] = [*(self.scale_some,) * 3, self.open_one, self.end_one, self.cut]
        for step in range(steps):
            self.now += 10
            self.random.choice(acts)()
            if step % 20 == 19:
                self.truncate({s: max(self.stream.cut.get(s, 0), 0) for s in self.stream.active_epoch.segments})

    def scale_some(self) -> None:
        active = self.stream.active_segments()
        first = self.random.randrange(len(active))
        sealed = active[first : first + self.random.randint(1, 2)]
        low, high = sealed[0].low, sealed[-1].high
        middle = (low + high) / 2
        ranges = ((low, high),) if self.random.random() < 0.5 else ((low, middle), (middle, high))
        seals = tuple(s.id for s in sealed)
        assert self.start_scale(seals, ranges, self.now).status == "STARTED"
        self.end_scale({s: size_of(s) for s in seals})

    def open_one(self) -> None:
        self.open_transactions.append(self.open(f"at {self.now}"))

    def end_one(self) -> None:
        """Commit a transaction, mostly of an epoch long gone, so that the batch rolls."""
        if not self.open_transactions:
            return
        id = self.open_transactions.pop(self.random.randrange(len(self.open_transactions)))
        assert self.commit(id).status == "SUCCESS"
        committed = self.stream.history.epoch(int(id[:8], 16)).segments
        duplicates = (segment_id(self.stream.active + 1, number_of(s)) for s in committed)
        if self.batch.kind.name == "ROLL_TRANSACTIONS":
            self.record_rolled({s: size_of(s) for s in duplicates})
            self.end_roll({s: size_of(s) for s in self.stream.active_epoch.segments})
        else:
            self.end()

    def cut(self) -> None:
        self.truncate(self.further_cut(queries.head(self.stream)))

    def further_cut(self, cut: dict[int, int]) -> dict[int, int]:
        """Where a reader may be that goes on from a cut: what was read to its end gives way to its successors."""
        cut, stream = dict(cut), self.whole
        for _ in range(self.random.randint(0, 8)):
            segment = self.random.choice([s for s in sorted(cut) if cut[s] >= 0])
            following = queries.successors_with_predecessors(stream, segment)
            if not following:
                cut[segment] = max(cut[segment], self.random.randint(0, 90))
                continue
            further = {s: at for s, at in cut.items() if s != segment}
            for successor, predecessors in following:
                further[successor.id] = -1 if further.keys() & set(predecessors) else 0
            if outcome(cuts.is_valid, stream, further) is True:
                cut = further
        return cut


def outcome(ask: Callable[..., Any], stream: Stream, *of: Cut) -> Any:
    """The answer, or which error it is."""
    try:
        return ask(stream, *of)
    except (InvalidArgumentError, NotFoundError) as error:
        return repr(error)


seeds = st.integers(0, 2**32)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_a_condensed_stream_has_the_same_epochs_and_segments_as_a_whole_one(seed: int) -> None:
    twins = Twins(Random(seed))
    twins.live(60)
    stream, whole = twins.stream, twins.whole
    assert stream.history.chunks and not whole.history.chunks
    assert epochs_of(stream) == epochs_of(whole)
    assert segments_of(stream) == segments_of(whole) == whole.history.segments
    assert sealed_in(stream) == sealed_in(whole) == whole.history.sealed_in
    assert stream.next_number == whole.next_number == 1 + max(map(number_of, segments_of(whole)))
    assert scale.plan(stream, (), ((0.0, 1.0),), 5) == scale.plan(whole, (), ((0.0, 1.0),), 5)
    for segment in segments_of(whole):
        following = [queries.successors_with_predecessors(each, segment) for each in (stream, whole)]
        assert following[0] == following[1]
    for epoch in range(whole.history.count):
        assert stream.history.reference(epoch) == whole.history.reference(epoch)
        began = stream.history.created_at(epoch)
        for time in (began - 1, began, began + 1):
            assert stream.history.epoch_at(time) == whole.history.epoch_at(time)
        id = f"{epoch:08x}-0000-0000-0000-000000000001"
        assert segments_to_write(stream, id) == segments_to_write(whole, id)
        assert segment_names(stream, id) == segment_names(whole, id)
    ends = {s: whole.history.last_epoch(s) for s in segments_of(whole)}
    spans = [(0, 0), (1, CHUNK), (CHUNK, 4 * CHUNK), (whole.active - 1, whole.active), (5, whole.active), (5, 4)]
    for first, last in spans:
        between = {s for s, end in ends.items() if first <= last and epoch_of(s) <= last and end >= first}
        found = list(stream.history.within(first, last))
        assert {s.id for s in found} == between and len(found) == len(between)
    for unknown in (segment_id(e, n) for e in (0, 1, CHUNK, whole.history.count) for n in (0, 1, 10_000)):
        assert stream.history.find(unknown) == whole.history.find(unknown)
        assert stream.history.replaced_in(unknown) == whole.history.replaced_in(unknown)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_cuts_of_a_condensed_stream_compare_as_in_a_whole_one(seed: int) -> None:
    twins = Twins(random := Random(seed))
    twins.live(60)
    stream, whole = twins.stream, twins.whole
    positions = [dict.fromkeys(epoch.segments, 5) for epoch in random.sample(epochs_of(whole), 6)]
    positions += [twins.further_cut(cut) for cut in (*positions, queries.head(stream))]
    segments = sorted(segments_of(whole))
    positions += [dict.fromkeys(random.sample(segments, 3), 0) for _ in range(3)]
    for one in positions:
        assert outcome(cuts.is_valid, stream, one) == outcome(cuts.is_valid, whole, one)
        assert cuts.first_epoch(stream, one) == cuts.first_epoch(whole, one)
        for other in (*positions, {}):
            for pair in ((one, other), (other, one)):
                assert outcome(cuts.segments_between, stream, *pair) == outcome(cuts.segments_between, whole, *pair)


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_bytes_before_a_cut_are_the_same_as_in_a_stream_never_truncated(seed: int) -> None:
    twins = Twins(Random(seed))
    twins.live(60)
    stream, whole = twins.stream, twins.whole
    for _ in range(5):
        cut = twins.further_cut(queries.head(stream))
        found, expected = (retention.report(s, cut, "id", "test", 0) for s in (stream, whole))
        assert found is not None and expected is not None and found.sample == expected.sample
        assert (found.sample is None) == (not cuts.is_equal_or_after(stream, cut, queries.head(stream)))


@settings(max_examples=30, deadline=None)
@given(seeds)
def test_a_writer_far_behind_a_condensed_head_counts_as_in_a_whole_stream(seed: int) -> None:
    twins = Twins(random := Random(seed))
    twins.live(60)
    for writer in ("a", "b"):
        position = dict.fromkeys(random.choice(epochs_of(twins.whole)).segments, 1)
        twins.decide(NoteWriterTime(*STREAM, writer, 5, position))
    marks = [
        watermark.next_watermark(s, watermark.writer_activity(s, None, {}, 0), None)
        for s in (twins.stream, twins.whole)
    ]
    assert marks[0] is not None and marks[0] == marks[1]


def test_only_whole_chunks_behind_the_head_are_condensed() -> None:
    twins = Twins(Random(1))
    for _ in range(2 * CHUNK):
        twins.scale_some()
    kept, before = twins.stream.history, epochs_of(twins.stream)
    for epoch, condensed in ((CHUNK - 1, 0), (CHUNK, CHUNK), (2 * CHUNK - 1, CHUNK), (2 * CHUNK, 2 * CHUNK)):
        twins.truncate(dict.fromkeys(kept.epoch(epoch).segments, 0))
        assert cuts.first_epoch(twins.stream, twins.stream.cut) == epoch and len(kept.chunks) * CHUNK == condensed
        assert epochs_of(twins.stream) == before and twins.stream.history is kept
    assert set(kept.segments) == set(twins.stream.active_epoch.segments)
    assert not kept.sealed_in and not kept.sealed_sizes


def test_a_segment_that_lives_through_all_chunks_is_found_in_the_first_and_the_last() -> None:
    log = TxnLog(segments=2)
    for i in range(3 * CHUNK):
        upper = log.stream.active_segments()[1]
        log.scale((upper.id,), ((0.5, 1.0),), at=2000 + i)
    log.split(0, at=9000)
    log.truncate(dict.fromkeys(log.stream.active_epoch.segments, 0))
    found = log.stream.history
    assert len(found.chunks) == 3 and 0 in found.segments, "its last epoch fills no chunk yet"
    for i in range(CHUNK):
        log.split(max(map(number_of, log.stream.active_epoch.segments)), at=9001 + i)
    log.truncate(dict.fromkeys(log.stream.active_epoch.segments, 0))
    assert len(log.stream.history.chunks) == 4 and 0 not in found.segments
    assert found.replaced_in(0) == 3 * CHUNK + 1 and found.last_epoch(0) == 3 * CHUNK
    assert [n for n in range(found.count) if 0 in found.epoch(n).segments] == list(range(3 * CHUNK + 1))


def test_an_unknown_segment_raises_key_error() -> None:
    with pytest.raises(KeyError):
        TxnLog().stream.history.segment(segment_id(0, 7))
