"""Invariants: a sound original has no problem, and each lie is named."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from uuid import UUID

import msgspec
import pytest
from unit.migration.original import COUNTER, HEAD, LEFT, RIGHT, SCOPE, WHOLE, Original, T, id_of, orders, segment, table

from sluice.domain.segment import kvt_segment_name, segment_name, transaction_segment_name
from sluice.domain.transaction_ids import halves
from sluice.lookback.progress import unseen
from sluice_cli.migration import records as r
from sluice_cli.migration import tables as t
from sluice_cli.migration.dump import Dump, dump
from sluice_cli.migration.inspection import Inspection, Inspector
from sluice_cli.migration.segments import SegmentJudge

TRANSACTION = UUID(int=2 << 96 | 77)
Change = Callable[[Original], Awaitable[None]]


def transaction(status: r.TransactionStatus, order: int = r.NO_TIME) -> r.ActiveTransaction:
    return r.ActiveTransaction(T, T, T, status, "", r.NO_TIME, order)


async def inspected(original: Original, folder: Path, *changes: Change, meanwhile: Change | None = None) -> Inspection:
    """`meanwhile` is between the reading and the judging."""
    await original.fill()
    for change in changes:
        await change(original)
    source = original.source()
    await dump(source, folder, 1, lambda: T, unseen)
    if meanwhile is not None:
        await meanwhile(original)
    return await Inspector(Dump(folder), SegmentJudge(original.store, 4), source).run(unseen)


def replaced(**fields: object) -> Change:
    """The stream with these fields."""

    async def change(original: Original) -> None:
        await original.put_stream("orders", msgspec.structs.replace(orders(), **fields))

    return change


def without(key: str) -> Change:
    """The stream without a key of its metadata."""

    async def change(original: Original) -> None:
        await original.remove(t.of_stream("metadata", SCOPE, "orders", id_of("orders")), key)

    return change


def with_transactions(found: dict[UUID, r.ActiveTransaction], epoch: int = 2) -> Change:
    async def change(original: Original) -> None:
        await original.put_transactions("orders", epoch, found)
        for id in found:
            for one in original.streams["orders"].epochs[2].segments:
                await original.store.create_segment(segment_of(id, one.id), 0, 0)

    return change


def segment_of(transaction: UUID, segment: int) -> str:
    return transaction_segment_name(SCOPE, "orders", segment, *halves(f"{transaction}"))


def without_a_segment(change: Change) -> Change:
    async def both(original: Original) -> None:
        await change(original)
        await original.store.delete_segment(segment_of(TRANSACTION, LEFT.id))

    return both


def epoch(
    number: int, *segments: r.SegmentRecord, reference: int | None = None, ms: int | None = None
) -> dict[int, r.EpochRecord]:
    """The epochs of the stream, with another one of this number."""
    record = r.EpochRecord(
        number, number if reference is None else reference, segments, T + number if ms is None else ms, 0, 0
    )
    return {**orders().epochs, number: record}


async def no_segment(original: Original) -> None:
    await original.store.delete_segment(segment_name(SCOPE, "orders", 2 << 32 | 3))


async def no_old_segment(original: Original) -> None:
    await original.store.delete_segment(segment_name(SCOPE, "orders", 1 << 32 | 2))


async def sealed_segment(original: Original) -> None:
    await original.store.seal_segment(segment_name(SCOPE, "orders", 2 << 32 | 3))


async def old_segment(original: Original) -> None:
    await original.store.create_segment(segment_name(SCOPE, "orders", 0), 0, 0)


async def truncated_segment(original: Original) -> None:
    await original.store.truncate_segment(segment_name(SCOPE, "orders", 1 << 32 | 2), 8)


async def other_keys(original: Original) -> None:
    name = kvt_segment_name(SCOPE, "stock", 0)
    await original.store.delete_table_segment(name)
    await original.store.create_table_segment(name, 4)


async def no_configuration(original: Original) -> None:
    await original.remove(t.of_group(SCOPE, "till", id_of("till")), "configuration")


def table_replaced(**fields: object) -> Change:
    """The table with these fields."""

    async def change(original: Original) -> None:
        name = t.of_stream("metadata", SCOPE, "stock", id_of("stock"))
        await original.remove(name, "epochRecord-0")
        await original.put_values(name, t.encode_table(msgspec.structs.replace(table(), **fields)))

    return change


async def too_early(original: Original) -> None:
    await replaced(current_epoch=1)(original)
    await with_transactions({TRANSACTION: transaction(r.TransactionStatus.OPEN)})(original)


async def no_mark(original: Original) -> None:
    await original.remove(t.in_scope("streams", SCOPE, id_of(SCOPE)), "_MARKorders")


async def no_group(original: Original) -> None:
    await original.remove(t.in_scope("readerGroups", SCOPE, id_of(SCOPE)), "till")


async def high_number(original: Original) -> None:
    await original.put(t.DELETED_STREAMS, t.Numbers(numbers={"shop/orders": 0}))


NO_KEYS = r.TableConfiguration(SCOPE, "stock", 1, 0, 12)
COMMITTING = transaction(r.TransactionStatus.COMMITTING, 4)
LACKING = r.Truncation({LEFT.id: 0}, (r.SpanEntry(LEFT, 1),), (WHOLE.id,), (), 100, False)
LIES: list[tuple[str, int, bool, Change]] = [
    ("a head without some keys", 8, True, replaced(truncation=LACKING)),
    ("half a commit", 10, True, without_a_segment(with_transactions({TRANSACTION: COMMITTING}))),
    ("an epoch is missing", 1, True, without("epochRecord-1")),
    ("an epoch too many", 1, True, replaced(epochs=epoch(3, LEFT, RIGHT))),
    ("no current epoch", 1, True, without("currentEpochRecord")),
    ("no head", 1, True, without("truncation")),
    ("no known state", 1, True, replaced(state=r.StateRecord(r.StreamState.UNKNOWN))),
    ("a hole", 2, True, replaced(epochs=epoch(1, LEFT, segment(2, 1, 0.6, 1.0)))),
    ("a number from below", 3, True, replaced(epochs=epoch(2, LEFT, segment(0, 2, 0.5, 1.0)))),
    ("a false repetition", 3, True, replaced(epochs=epoch(2, LEFT, RIGHT, reference=1))),
    ("two at one time", 4, False, replaced(epochs=epoch(1, LEFT, RIGHT, ms=T))),
    ("no history", 4, False, replaced(history={0: r.HistoryChunk(())})),
    ("a false end", 5, False, replaced(sealed_at={0: 1, RIGHT.id: 1})),
    ("no segment", 6, True, no_segment),
    ("a sealed segment", 6, True, sealed_segment),
    ("no old segment", 7, True, no_old_segment),
    ("another size", 7, False, replaced(size_shards={0: r.SealedSizes({0: 100, RIGHT.id: 51})})),
    ("a cut without span", 8, True, replaced(truncation=msgspec.structs.replace(HEAD, span=()))),
    ("a segment that is deleted", 8, False, old_segment),
    ("another beginning", 8, False, truncated_segment),
    ("a cut without entry", 9, False, replaced(retention=r.RetentionSet(()))),
    ("an epoch without", 10, True, with_transactions({TRANSACTION: COMMITTING}, 1)),
    ("an epoch to come", 10, True, too_early),
    (
        "one place for two",
        10,
        True,
        with_transactions({TRANSACTION: COMMITTING, UUID(int=TRANSACTION.int + 1): COMMITTING}),
    ),
    ("an unknown status", 10, True, with_transactions({TRANSACTION: transaction(r.TransactionStatus.UNKNOWN)})),
    ("an unknown batch", 10, True, replaced(committing=r.CommittingTransactions(2, (TRANSACTION,), r.NO_EPOCH))),
    ("a low counter", 11, False, with_transactions({UUID(int=2 << 96 | COUNTER + 1): COMMITTING})),
    ("no mark stream", 12, False, no_mark),
    ("no group", 13, False, no_group),
    ("another generation", 13, False, replaced(subscriber_records={"shop/till": r.Subscriber("shop/till", 2, T, {})})),
    ("a group without configuration", 13, True, no_configuration),
    ("a table without segments", 14, True, table_replaced(epochs={})),
    (
        "a table of keys without length",
        14,
        True,
        table_replaced(configuration=NO_KEYS),
    ),
    ("keys of another length", 14, True, other_keys),
    ("a high number", 15, False, high_number),
    ("sealed in use", 16, True, replaced(state=r.StateRecord(r.StreamState.SEALED))),
]


async def test_a_sound_original_has_no_problem(tmp_path: Path) -> None:
    found = await inspected(
        Original(), tmp_path, with_transactions({TRANSACTION: transaction(r.TransactionStatus.OPEN)})
    )
    assert (found.problems, found.unreadable) == ((), ())
    assert found.can_be_imported
    assert all(one.holds for one in found.invariants)
    assert found.counts["streams"] == 1 and found.counts["internalStreams"] == 3
    assert found.counts["transactions.open"] == 1 and found.counts["epochs"] == 6
    assert found.bytes == 50


async def test_a_batch_of_which_one_has_completed_while_it_was_read_is_sound(tmp_path: Path) -> None:
    async def complete(original: Original) -> None:
        key = t.completed_key(SCOPE, "orders", f"{TRANSACTION}")
        ended = r.CompletedTransaction(T, r.TransactionStatus.COMMITTED)
        await original.put(t.completed_batch(5), t.Completed(transactions={key: ended}))
        await original.put(t.COMPLETED_BATCHES, t.Names(numbers={5: None, 6: None}))

    batch = replaced(committing=r.CommittingTransactions(2, (TRANSACTION,), r.NO_EPOCH))
    found = await inspected(Original(), tmp_path, batch, meanwhile=complete)
    assert found.problems == ()


@pytest.mark.parametrize(("number", "stops", "change"), [one[1:] for one in LIES], ids=[one[0] for one in LIES])
async def test_what_does_not_hold_is_named_and_stops_if_it_must(
    number: int, stops: bool, change: Change, tmp_path: Path
) -> None:
    found = await inspected(Original(), tmp_path, change)
    assert number in {problem.invariant for problem in found.problems if problem.stops is stops}, found.problems
    assert found.can_be_imported is not stops
    assert not next(one for one in found.invariants if one.number == number).holds


async def test_what_is_under_way_of_a_stream_with_a_missing_epoch_is_not_guessed(tmp_path: Path) -> None:
    scaled = replaced(transition=r.EpochTransition(0, T, (WHOLE.id,), NEW))
    found = await inspected(Original(), tmp_path, scaled, without("epochRecord-1"))
    assert "epochRecord-1 is missing" in [one.what for one in found.problems if one.stops]
    assert found.unfinished == ()


async def test_an_entry_that_cannot_be_read_stops_and_is_named(tmp_path: Path) -> None:
    async def break_state(original: Original) -> None:
        name = t.of_stream("metadata", SCOPE, "orders", id_of("orders"))
        await original.put_values(name, {"state": b"\0"})

    found = await inspected(Original(), tmp_path, break_state)
    assert not found.can_be_imported
    (bad,) = found.unreadable
    assert bad.of == "stream shop/orders" and bad.what.startswith("state: ")


DONE = (r.NewSegment(2 << 32 | 3, (r.Range(0.5, 0.75),)), r.NewSegment(2 << 32 | 4, (r.Range(0.75, 1.0),)))
NEW = (r.NewSegment(3 << 32 | 5, (r.Range(0.0, 0.25),)), r.NewSegment(3 << 32 | 6, (r.Range(0.25, 0.5),)))


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            replaced(state=r.StateRecord(r.StreamState.SCALING), transition=r.EpochTransition(2, T, (LEFT.id,), NEW)),
            "a scale to epoch 3",
        ),
        (replaced(transition=r.EpochTransition(1, T, (RIGHT.id,), DONE)), "a scale to epoch 2, which is done"),
        (
            replaced(transition=r.EpochTransition(1, T, (RIGHT.id,), NEW)),
            "a scale to epoch 2, which commits made",
        ),
        (replaced(state=r.StateRecord(r.StreamState.SCALING)), "it is SCALING, and nothing is left to do"),
        (replaced(truncation=msgspec.structs.replace(HEAD, updating=True)), "a truncation"),
        (replaced(state=r.StateRecord(r.StreamState.CREATING)), "its creation has not ended"),
        (with_transactions({TRANSACTION: COMMITTING}), "1 transactions are COMMITTING"),
    ],
)
async def test_what_is_under_way_is_named(change: Change, what: str, tmp_path: Path) -> None:
    found = await inspected(Original(), tmp_path, change)
    assert [(one.of, one.what) for one in found.unfinished] == [("stream shop/orders", what)]
    assert found.can_be_imported
