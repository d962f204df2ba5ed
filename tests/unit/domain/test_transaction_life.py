"""Any order of requests about transactions: their states only go on, and the index says what the states say."""

from hypothesis import given, settings
from hypothesis import strategies as st
from support.txn_log import TxnLog, ids_of_ended

from sluice.domain.errors import BusyError
from sluice.domain.transaction.state import EndedTransaction, Transaction, TransactionState
from sluice.domain.transaction_ids import epoch_of, transaction_id

UNKNOWN, OPEN = TransactionState.UNKNOWN, TransactionState.OPEN
COMMITTING, COMMITTED = TransactionState.COMMITTING, TransactionState.COMMITTED
ABORTING, ABORTED = TransactionState.ABORTING, TransactionState.ABORTED

NEXT = {
    UNKNOWN: {OPEN},
    OPEN: {COMMITTING, ABORTING},
    COMMITTING: {COMMITTED},
    ABORTING: {ABORTED},
    COMMITTED: set(),
    ABORTED: set(),
}
BATCH = 3


class Life:
    """Some transactions of a stream, and what was seen of them."""

    def __init__(self) -> None:
        self.log = TxnLog(most=BATCH)
        self.ids: dict[str, str] = {}
        self.all: set[str] = set()
        self.states: dict[str, TransactionState] = {}
        self.committed_order: list[str] = []

    def act(self, act: str, request: str) -> None:
        self.log.now += 1
        id = self.ids.get(request) or transaction_id(self.log.stream.active_epoch.reference, request)
        if act == "open":
            # The fold sees to it that a request is decided once.
            if request not in self.ids:
                self.ids[request] = self.log.open(request, ready=False)
                self.all.add(self.ids[request])
        elif act in ("begin", "end", "split"):
            getattr(self, act)()
        else:
            getattr(self.log, act)(id)
        self.look()

    def begin(self) -> None:
        self.log.begin()

    def end(self) -> None:
        commits = self.log.commits
        if commits is not None and commits.workflow is not None:
            self.log.finish_batch()

    def split(self) -> None:
        commits = self.log.commits
        try:
            self.log.split(max(self.log.stream.active_epoch.segments) & 0xFFFFFFFF, at=self.log.now)
        except BusyError:
            assert commits is not None and commits.workflow is not None

    def look(self) -> None:
        """Note what has become of each, and hold that against what may have."""
        for id in self.all:
            before, after = self.states.get(id, UNKNOWN), self.log.state(id)
            if before is after:
                continue
            assert after in NEXT[before], (before, after)
            self.states[id] = after
            if after is COMMITTING:
                self.committed_order.append(id)
        committed = [id for id in self.committed_order if self.log.state(id) is COMMITTED]
        assert committed == self.committed_order[: len(committed)], "committed in the order of the requests"

    def of(self, state: TransactionState) -> set[str]:
        return {id for id in self.all if self.log.state(id) is state}

    def check_index(self) -> None:
        index = self.log.index_of_all
        assert set(index.open) == self.of(OPEN)
        assert list(index.committing) == [id for id in self.committed_order if self.log.state(id) is COMMITTING]
        assert set(index.aborting) == self.of(ABORTING)
        ended = ids_of_ended(index)
        assert set(ended) == self.of(COMMITTED) | self.of(ABORTED) and len(ended) == len(set(ended))
        assert index.live == len(self.of(OPEN) | self.of(COMMITTING) | self.of(ABORTING))

    def check_aggregates(self) -> None:
        for id in self.all:
            found = self.log.transaction(id)
            if isinstance(found, EndedTransaction):
                assert found.state in (COMMITTED, ABORTED)
                assert (found.reason is not None) == (found.state is ABORTED)
            elif isinstance(found, Transaction):
                is_opening = found.state is OPEN and not found.ready
                assert (found.workflow is not None) == (found.state is ABORTING or is_opening)
        commits = self.log.commits
        if commits is not None and commits.workflow is not None:
            batch = commits.workflow.transactions
            assert 1 <= len(batch) <= BATCH
            assert list(batch) == list(self.log.index_of_all.committing)[: len(batch)]
            assert len({epoch_of(id) for id in batch}) == 1


acts = st.tuples(
    st.sampled_from(["open"] * 3 + ["ready", "ping", "commit", "commit", "abort", "finish_abort", "begin", "end"]),
    st.integers(0, 7).map("r{}".format),
)
some_scales = st.one_of(acts, acts, acts, acts, acts, st.just(("split", "")))


@settings(max_examples=300, deadline=None)
@given(st.lists(some_scales, max_size=60))
def test_states_only_go_on_and_the_index_says_what_they_say(script: list[tuple[str, str]]) -> None:
    life = Life()
    for act, request in script:
        if act == "ready" and request not in life.ids:
            continue
        life.act(act, request)
        life.check_index()
        life.check_aggregates()


@settings(max_examples=100, deadline=None)
@given(st.lists(some_scales, max_size=40))
def test_whatever_happened_everything_can_be_brought_to_its_end(script: list[tuple[str, str]]) -> None:
    life = Life()
    for act, request in script:
        life.act(act, request)
    for id in list(life.log.index_of_all.open):
        life.log.abort(id)
    life.look()
    for id in list(life.log.index_of_all.aborting):
        life.log.finish_abort(id)
    life.end()
    for _ in range(len(life.all) + 1):
        life.begin()
        life.end()
    assert life.log.index_of_all.live == 0
    life.look()
    life.check_index()
