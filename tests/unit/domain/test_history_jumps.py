"""A history whose epochs' numbers leave out others answers as one that has all at hand, condensed or not."""

import random

import pytest

from sluice.domain.segment import Segment, segment_id
from sluice.domain.stream.history import CHUNK_EPOCHS, Epoch, History

EPOCHS = 4 * CHUNK_EPOCHS


def made(seed: int) -> History:
    """Each epoch replaces one of four segments; now and then its number leaves out others."""
    chance = random.Random(seed)
    bounds = [(i / 4, (i + 1) / 4) for i in range(4)]
    active = [Segment(segment_id(0, i), low, high) for i, (low, high) in enumerate(bounds)]
    history = History([Epoch(0, 0, 1000, tuple(s.id for s in active))], {s.id: s for s in active})
    number = 0
    for at in range(1, EPOCHS):
        number += chance.choice((1, 1, 1, 1, 1, 1, 1, 2, 100, 1 << 16))
        gone = chance.choice(active)
        comes = Segment(segment_id(number, 4 + at), gone.low, gone.high)
        active = sorted((comes if s is gone else s for s in active), key=lambda s: s.id)
        history.add(Epoch(number, number, 1000 + at, tuple(s.id for s in active)), [comes], [gone.id])
    return history


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("chunks", range(4))
def test_every_answer_is_the_same_however_much_is_condensed(seed: int, chunks: int) -> None:
    whole, condensed = made(seed), made(seed)
    epochs = list(whole.recent)
    numbers = [epoch.number for epoch in epochs]
    condensed.condense(numbers[chunks * CHUNK_EPOCHS + 7])
    assert len(condensed.chunks) == chunks and condensed.count == numbers[-1] + 1
    assert list(condensed.numbers(0, numbers[-1])) == numbers
    segments = sorted(whole.segments)
    for at, epoch in enumerate(epochs):
        number = epoch.number
        assert condensed.epoch(number) == epoch and condensed.has(number)
        assert condensed.reference(number) == epoch.reference
        assert condensed.created_at(number) == epoch.created_at
        assert condensed.epoch_at(epoch.created_at) == number
        if at:
            assert condensed.before(number) == numbers[at - 1] and condensed.after(numbers[at - 1]) == number
            assert all(not condensed.has(left_out) for left_out in range(numbers[at - 1] + 1, number)[:5])
    for segment in segments:
        assert condensed.find(segment) == whole.find(segment)
        assert condensed.replaced_in(segment) == whole.sealed_in.get(segment)
        assert condensed.last_epoch(segment) == max(e.number for e in epochs if segment in e.segments)
    for first in range(0, EPOCHS, 61):
        for last in range(first, EPOCHS, 53):
            found = sorted(s.id for s in condensed.within(numbers[first], numbers[last]))
            assert found == sorted({s for epoch in epochs[first : last + 1] for s in epoch.segments})
