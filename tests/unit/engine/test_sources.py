"""Which requests are decided: each exactly once, whatever is delivered a second time, lost, or proposed late.

The property test has an owner that reads a partition of requests and proposes entries, as a consumer does. It may be
replaced at any time, what it proposed may come late, and the partition may lose its end.
"""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from sluice.engine.offsets import Offsets
from sluice.engine.record import RequestPosition, Source
from sluice.engine.sources import DecidedSources

TOPIC = "requests@1"


def at(offset: int, epoch: int = 0, topic: str = TOPIC) -> Source:
    return Source(topic, epoch, offset)


def test_a_request_that_was_marked_is_decided_and_no_other() -> None:
    sources = DecidedSources()
    sources.decide(at(5))
    assert sources.is_decided(at(5))
    assert not any(sources.is_decided(s) for s in (at(4), at(6), at(5, epoch=1), at(5, topic="requests@2")))


def test_a_lower_offset_of_a_later_leader_is_new() -> None:
    sources = DecidedSources()
    sources.raise_floors({TOPIC: (0, 10)})
    sources.decide(at(10))
    assert not sources.is_decided(at(3, epoch=1)) and sources.is_decided(at(3))


@given(st.lists(st.integers(0, 3), max_size=2000))
def test_what_is_kept_is_bounded_by_the_requests_under_way(steps: list[int]) -> None:
    sources = DecidedSources()
    for offset, behind in enumerate(steps):
        sources.raise_floors({TOPIC: (0, offset - behind)})
        sources.decide(at(offset))
        assert sources.remembered() <= 2 * 64


class Proposal(msgspec.Struct, frozen=True):
    position: RequestPosition
    floor: RequestPosition


class Partition:
    """A partition of requests, its present owner, and the journal's fold."""

    def __init__(self) -> None:
        self.log: list[RequestPosition] = []
        self.epoch = 0
        self.committed: RequestPosition = (-1, 0)
        self.sources = DecidedSources()
        self.counted: list[RequestPosition] = []
        self.late: list[Proposal] = []
        self.floor: RequestPosition = (-1, 0)
        self.assign()

    def assign(self) -> None:
        """Another owner begins at what was committed, or where that leader epoch ends, if that is earlier."""
        self.offsets = Offsets()
        epoch, offset = self.committed
        self.at = min(offset, sum(position[0] <= epoch for position in self.log))
        self.open: list[RequestPosition] = []

    def request(self) -> None:
        self.log.append((self.epoch, len(self.log)))

    def deliver(self) -> None:
        if self.at < len(self.log):
            position = self.log[self.at]
            if self.offsets.runs_backwards(position[1]):
                self.offsets, self.open = Offsets(), []
            self.offsets.took(position, 0)
            self.open.append(position)
            self.at += 1

    def propose(self, number: int, is_late: bool) -> None:
        """Decide one of the open requests; what is late is folded later, and acknowledged never."""
        if self.open:
            position = self.open[number % len(self.open)]
            proposal = Proposal(position, self.offsets.floor)
            if is_late:
                self.late.append(proposal)
                return
            self.fold(proposal)
            self.open.remove(position)
            self.offsets.acknowledge(position[1])

    def fold(self, proposal: Proposal) -> None:
        """As the fold rule does: the record's floors, then its entry."""
        self.sources.raise_floors({TOPIC: proposal.floor})
        assert all(self.sources.is_decided(Source(TOPIC, *position)) for position in self.counted), "decided for ever"
        source = Source(TOPIC, *proposal.position)
        if not self.sources.is_decided(source):
            self.sources.decide(source)
            assert proposal.position not in self.counted, "decided twice"
            self.counted.append(proposal.position)
        elif proposal.position in self.log:
            assert proposal.position in self.counted, "a new request is refused"

    def commit(self) -> None:
        if self.offsets.committable is not None:
            self.committed = self.offsets.committable

    def lose_end(self, number: int) -> None:
        end = number % (len(self.log) + 1)
        del self.log[end:]
        self.epoch += 1
        if self.at > end:
            self.at = 0


STEPS = ("request", "request", "deliver", "deliver", "propose", "propose", "late", "fold", "commit", "assign", "lose")


OWNER_COMMITS_BEFORE_IT_NOTICES = ["request", "deliver", "propose", "lose", "request", "commit"]


@example([(step, 0) for step in OWNER_COMMITS_BEFORE_IT_NOTICES])
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 30)), max_size=120))
def test_each_request_is_decided_exactly_once_whatever_happens(script: list[tuple[str, int]]) -> None:
    partition = Partition()
    for step, number in script:
        match step:
            case "request":
                partition.request()
            case "deliver":
                partition.deliver()
            case "propose" | "late":
                partition.propose(number, step == "late")
            case "fold" if partition.late:
                partition.fold(partition.late.pop(number % len(partition.late)))
            case "commit":
                partition.commit()
            case "assign":
                partition.assign()
            case "lose":
                partition.lose_end(number)
    partition.assign()
    while partition.at < len(partition.log):
        partition.deliver()
    while partition.open:
        partition.propose(0, is_late=False)
    assert set(partition.log) <= set(partition.counted)
    for proposal in partition.late:
        partition.fold(proposal)
