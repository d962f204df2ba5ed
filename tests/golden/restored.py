"""A system is restored from a back-up behind which its segment stores went on, and serves on.

The journal before the restore is lost, as in life: the golden one is what the restore and the restored system wrote.
"""

from typing import Any

from golden.stage import Stage
from golden.stories import FIXED, GROUP_ID, ORDERS, SHOP, commit, open_transaction, scale, stream_of, write_into
from sluice.domain.cluster.decide import decide_assignment
from sluice.domain.cluster.state import CLUSTER
from sluice.domain.config import GroupRetention, ReaderGroupConfig, TableConfig
from sluice.domain.decision import Reply
from sluice.domain.host import Host
from sluice.domain.ids import StreamId
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream import commands as st
from sluice.domain.stream.state import StreamState
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.transaction import commands as txn
from sluice.domain.transaction.state import EndedTransaction, TransactionState
from sluice.domain.workflow import WorkflowKind, running

BEGIN_S = 1_800_000_000.0
"""When the story begins, epoch s, in 2027: where numbers go on follows from the minute of the restore."""

CALM, SHORT, SHUT, MADE_ANEW, LATER = (StreamId(SHOP, name) for name in ("calm", "short", "shut", "anew", "later"))


async def restored() -> Stage:
    """The system that was restored, when it has served for a while."""
    before = Stage()
    await _resources(before)
    opened, committing = await open_transaction(before), await open_transaction(before)
    write_into(before, opened, 1)
    write_into(before, committing, 2)
    with before.refusing("MergeSegmentsBatch"):
        await before.do(txn.CommitTransaction(*ORDERS, committing.transaction))
        await before.until(lambda: before.workflow(ORDERS.commits) is not None)
        journal = before.back_up()
    await _go_on(before, opened)
    before.end()
    after = Stage(journal(), before.store)
    assert _kinds(after) >= {WorkflowKind.RESTORE_STREAM, WorkflowKind.ABORT_TRANSACTION}
    await after.until(lambda: not _kinds(after))
    _check(after, opened, committing)
    await after.append_marker()
    await _serve(after)
    await after.append_marker()
    return after


async def _resources(stage: Stage) -> None:
    """What the back-up knows."""
    await stage.do(CreateScope(SHOP))
    for id in (ORDERS, CALM, SHORT, SHUT, MADE_ANEW):
        await stage.do(st.CreateStream(*id, FIXED))
    await scale(stage, ORDERS, 0, is_merge=False)
    for id in (ORDERS, MADE_ANEW):
        ended = await open_transaction(stage, id)
        await stage.do(txn.AbortTransaction(*id, ended.transaction))
    await stage.do(st.SealStream(*MADE_ANEW))
    await stage.do(st.DeleteStream(*MADE_ANEW))
    await stage.do(st.CreateStream(*MADE_ANEW, FIXED))
    group = ReaderGroupConfig(GROUP_ID, {str(ORDERS): {}}, retention=GroupRetention.AUTOMATIC)
    await stage.do(CreateReaderGroup(SHOP, "billing", group))
    await stage.do(CreateTable(SHOP, "prices", TableConfig(2, 16, 8)))
    await stage.do(CreateTable(SHOP, "rates", TableConfig(1, 4)))
    await stage.do(DeleteTable(SHOP, "rates"))
    hosts = [Host("10.0.0.1", 12345), Host("10.0.0.2", 12345)]
    await stage.decide(CLUSTER, lambda r, c: decide_assignment(r, 4, hosts, {}, 0, c))


async def _go_on(stage: Stage, opened: Reply) -> None:
    """Behind the back-up: a scale, a roll and another scale, a truncation, a seal, and a stream that is lost."""
    await scale(stage, ORDERS, 0, is_merge=False)
    await commit(stage, opened, "")
    await scale(stage, ORDERS, 1, is_merge=True)
    await scale(stage, SHORT, 0, is_merge=False)
    await stage.do(st.TruncateStream(*SHORT, {s.id: 0 for s in stream_of(stage, SHORT).active_segments()}))
    await stage.do(st.SealStream(*SHUT))
    await stage.do(st.CreateStream(*LATER, FIXED))


def _check(stage: Stage, opened: Reply, committing: Reply) -> None:
    """The stores say what happened; of transactions the back-up decides."""
    orders = stream_of(stage, ORDERS)
    assert orders.state is StreamState.ACTIVE and orders.history.after_all
    assert not stream_of(stage, CALM).history.has(1) and stream_of(stage, SHORT).cut
    assert stream_of(stage, SHUT).state is StreamState.SEALED
    assert stage.state(LATER.aggregate) is None
    outcomes = [stage.state(ORDERS.transaction(t.transaction).aggregate) for t in (opened, committing)]
    assert all(isinstance(outcome, EndedTransaction) for outcome in outcomes)
    assert [(outcome.state, outcome.reason) for outcome in outcomes] == [
        (TransactionState.ABORTED, txn.AbortReason.RESTORE),
        (TransactionState.COMMITTED, None),
    ]


async def _serve(stage: Stage) -> None:
    """The restored system does what any other does, with numbers of its own."""
    await scale(stage, ORDERS, 0, is_merge=False)
    opened, left = await open_transaction(stage), await open_transaction(stage)
    write_into(stage, opened, 3)
    await scale(stage, ORDERS, 1, is_merge=True)
    await commit(stage, opened, "writer")
    await stage.do(txn.AbortTransaction(*ORDERS, left.transaction))
    await stage.do(st.CreateStream(*LATER, FIXED))
    await stage.do(st.SealStream(*CALM))
    await stage.do(st.DeleteStream(*CALM))
    await stage.do(st.CreateStream(*CALM, FIXED))
    await stage.until(lambda: not _kinds(stage))


def _kinds(stage: Stage) -> set[WorkflowKind]:
    """The kinds of the workflows that run."""
    states: list[Any] = list(stage.truth.states().values())
    return {workflow.kind for state in states if (workflow := running(state)) is not None}
