"""Which records go together, and when."""

import asyncio
from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from support import virtual_time

from sluice.kafka.batching import MAX_BATCHES, SLOW_S, Batches

END, PAUSE = -1, -2
"""Steps beside those that add a record."""


class Sent:
    """What was handed to the client, and not ended since: partition and number of each record."""

    def __init__(self) -> None:
        self.all: list[tuple[int, int]] = []
        self.waiting: list[int] = []
        """How many waited when each was handed over."""
        self.under_way: list[tuple[int, int]] = []
        self.begun_s: dict[int, float] = {}
        """When the batch of each partition began that is on its way."""
        self.batches: Batches[int, tuple[int, int]] = Batches(self.produce)

    def produce(self, record: tuple[int, int]) -> None:
        self.all.append(record)
        self.waiting.append(self.batches.waiting)
        if record[0] not in {partition for partition, _ in self.under_way}:
            self.begun_s[record[0]] = asyncio.get_running_loop().time()
        self.under_way.append(record)

    def end(self, place: int = 0) -> None:
        self.batches.ended(self.under_way.pop(place)[0])


def add(sent: Sent, *records: tuple[int, int]) -> None:
    for record in records:
        sent.batches.add(record[0], record)


async def test_records_behind_a_lone_one_go_together_when_it_is_acknowledged() -> None:
    sent = Sent()
    add(sent, (0, 1), (0, 2), (0, 3))
    assert (sent.all, sent.batches.waiting) == ([(0, 1)], 2)
    sent.end()
    assert (sent.all, sent.batches.waiting) == ([(0, 1), (0, 2), (0, 3)], 0)


async def test_a_record_waits_until_it_is_handed_over() -> None:
    """So a stop, which another thread waits for, never sees it nowhere."""
    sent = Sent()
    add(sent, (0, 1), (0, 2), (0, 3))
    sent.end()
    assert sent.waiting == [0, 2, 2]


async def test_a_batch_ends_with_its_last_record() -> None:
    sent = Sent()
    add(sent, (0, 1), (0, 2), (0, 3))
    sent.end()
    add(sent, (0, 4))
    sent.end()
    assert sent.batches.waiting == 1
    sent.end()
    assert sent.batches.waiting == 0


async def test_the_partition_that_waits_longest_goes_next() -> None:
    sent = Sent()
    first = [(partition, 0) for partition in range(MAX_BATCHES)]
    add(sent, *first, (0, 1), (MAX_BATCHES, 0), (MAX_BATCHES + 1, 0))
    assert sent.all == first
    sent.end(place=1)
    assert sent.all[MAX_BATCHES:] == [(MAX_BATCHES, 0)]
    sent.end(place=0)
    assert sent.all[MAX_BATCHES + 1 :] == [(0, 1)]


def test_partitions_whose_broker_has_gone_hold_up_no_others() -> None:
    async def scene() -> None:
        sent, others = Sent(), [MAX_BATCHES, MAX_BATCHES + 1]
        gone = [(partition, 0) for partition in range(MAX_BATCHES)]
        add(sent, *gone, *((other, 0) for other in others), (0, 1))
        assert sent.all == gone
        await asyncio.sleep(SLOW_S)
        assert sent.all[MAX_BATCHES:] == [(other, 0) for other in others]
        # What comes back is bounded as before.
        sent.end()
        assert sent.all[MAX_BATCHES + 2 :] == [(0, 1)]

    virtual_time.run(scene())


@given(
    st.lists(st.one_of(st.integers(0, 8), st.just(END), st.just(PAUSE)), max_size=200),
    st.randoms(use_true_random=False),
)
def test_each_record_goes_once_and_in_order_however_they_end(steps: list[int], chance: Random) -> None:
    async def scene() -> None:
        sent, added = Sent(), Counter[int]()
        loop = asyncio.get_running_loop()
        for step in steps:
            if step >= 0:
                add(sent, (step, added[step]))
                added[step] += 1
            elif step == END:
                if sent.under_way:
                    sent.end(chance.randrange(len(sent.under_way)))
            else:
                await asyncio.sleep(SLOW_S / 3)
            begun_s = [sent.begun_s[partition] for partition in {partition for partition, _ in sent.under_way}]
            assert sum(loop.time() < since_s + SLOW_S for since_s in begun_s) <= MAX_BATCHES
        while sent.under_way:
            sent.end()
        for partition, count in added.items():
            assert [number for found, number in sent.all if found == partition] == list(range(count))

    virtual_time.run(scene())
