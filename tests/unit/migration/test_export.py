"""What Sluice knows, back in the tables of the original: they say what the original said, or what it would say now."""

import lzma
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.originals import SCOPE, GrowingStream, MemoryOriginal, T, group, table, transaction
from unit.migration.original import CONTROLLER, Original, id_of
from unit.migration.test_original_life import CAPTURED
from unit.migration.test_to_states import steps

from sluice.backup.states import BackedUp
from sluice.domain.ids import GroupId, StreamId, TableId
from sluice.domain.stream.history import Epoch
from sluice.domain.stream.state import DeletedStream, Stream, StreamState, StreamWorkflow, WriterTime
from sluice.domain.table.state import DeletedTable
from sluice.domain.transaction.index import StreamTransactions
from sluice.domain.workflow import WorkflowKind
from sluice.lookback.progress import unseen
from sluice.pravega.errors import ConnectionClosed
from sluice_cli.errors import CommandError, RefusedError
from sluice_cli.migration import model, tables
from sluice_cli.migration import records as r
from sluice_cli.migration.dump import THINGS, Dump, dump
from sluice_cli.migration.exporting import export
from sluice_cli.migration.from_states import in_the_way, tables_of
from sluice_cli.migration.inspection import Inspector
from sluice_cli.migration.to_states import take

NOW = T + 10**9
IDS: dict[type[model.Thing], Any] = {
    model.Stream: StreamId,
    model.ReaderGroup: GroupId,
    model.KeyValueTable: TableId,
}


def normal(value: Any) -> Any:
    """Collections in one order: theirs is that of a hash table."""
    if isinstance(value, msgspec.Struct):
        return {name: normal(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {key: normal(one) for key, one in value.items()}
    return sorted(map(normal, value), key=repr) if isinstance(value, tuple) else value


def test_what_came_from_the_real_controller_goes_back_as_it_was_unless_it_is_under_way(tmp_path: Path) -> None:
    (tmp_path / THINGS).write_bytes(lzma.decompress(CAPTURED.read_bytes()))
    life = Dump(tmp_path)
    found = take(life, NOW).backed_up
    busy = {reason.split(": ")[0].removeprefix("stream ") for reason in in_the_way(found)}
    assert {name.rstrip("-0123456789") for name in busy} == {
        f"shop/{name}" for name in ("scaled", "truncated", "rolled", "aborted", "busy")
    }
    said = 0
    for thing in life.things():
        assert not isinstance(thing, model.Unreadable) and thing.metadata is not None
        id = IDS[type(thing)](thing.scope, thing.name)
        if f"{id}" in busy:
            continue
        written = tables_of(found.states[id.aggregate])["metadata"]
        expected = thing.metadata
        if isinstance(expected, tables.StreamMetadata):
            expected = msgspec.structs.replace(expected, retention=r.RetentionSet(()), retention_cuts={})
        if thing.name == "truncated-0":
            # Its truncation was done, but for the state.
            expected = msgspec.structs.replace(expected, state=r.StateRecord(r.StreamState.ACTIVE))
        assert normal(written) == normal(expected), thing.name
        said += 1
    assert said > 40


METADATA = tables.of_stream("metadata", "shop", "orders", id_of("orders"))


class Cluster:
    """An original in memory that Sluice has taken the place of; `states` are what Sluice knows."""

    def __init__(self, original: Original, states: BackedUp, folder: Path) -> None:
        self.original = original
        self.states = states
        self._folder = folder
        self._dumps = 0

    async def export(self) -> dict[str, Any]:
        return await export(self.original.source(), self.states, unseen)

    async def dump(self) -> Dump:
        self._dumps += 1
        folder = self._folder / f"{self._dumps}"
        await dump(self.original.source(), folder, 1, lambda: T, unseen)
        return Dump(folder)

    async def back(self) -> BackedUp:
        """What comes when it is imported once more."""
        return take(await self.dump(), NOW).backed_up


def known(found: BackedUp) -> tuple[dict[str, Any], dict[str, StreamTransactions]]:
    return dict(found.states), found.transactions


async def taken_over(folder: Path, left_out: tuple[str, ...] = ()) -> Cluster:
    original = Original()
    await original.fill()
    del original.nodes.all[CONTROLLER]
    cluster = Cluster(original, BackedUp({}, {}, -1, 0), folder)  # type: ignore[arg-type]
    cluster.states = take(await cluster.dump(), NOW, left_out).backed_up
    return cluster


@given(steps, st.integers(1, 4), st.integers(0, 5), st.integers(0, 99))
def test_a_stream_that_goes_and_comes_back_is_the_same(
    steps: list[tuple[Any, ...]], segments: int, first: int, head: int
) -> None:
    growing = GrowingStream(segments=segments, first=first)
    growing.grow(steps)
    begin = growing.epochs[head % len(growing.epochs)]
    growing.fields["truncation"] = growing.truncation({s.id: 10 for s in begin.segments}, size_till=1234)
    original = growing.stream()
    here = take(MemoryOriginal(original), NOW).backed_up
    metadata = tables_of(here.states[f"stream:{SCOPE}/st"])["metadata"]
    assert isinstance(metadata, tables.StreamMetadata)
    again = take(MemoryOriginal(msgspec.structs.replace(original, metadata=metadata)), NOW).backed_up
    assert known(again) == known(here)


async def test_things_of_all_kinds_come_into_an_empty_data_plane_and_are_sound(tmp_path: Path) -> None:
    growing = GrowingStream(segments=2)
    growing.scale(0, 1, 2)
    growing.fields["configuration"] = r.StreamConfiguration(
        SCOPE,
        "st",
        r.ScalingPolicy(r.ScaleKind.EVENTS, 10, 2, 1),
        r.RetentionPolicy(r.RetentionKind.SIZE, 5, 9),
        updating=False,
        tags=("a", "b"),
    )
    growing.fields["subscribers"] = r.Subscribers((f"{SCOPE}/rg",))
    growing.fields["subscriber_records"] = {f"{SCOPE}/rg": r.Subscriber(f"{SCOPE}/rg", 2, T, {0: 7})}
    growing.writers["w"] = r.WriterMark(5, {0: 9}, True)
    ended = model.CompletedTransaction(
        SCOPE, "st", transaction(0, 1), r.CompletedTransaction(T + 5, r.TransactionStatus.COMMITTED)
    )
    here = MemoryOriginal(
        growing.stream(),
        GrowingStream("_RGrg").stream(),
        group("rg", "st", retention=r.GroupRetention.MANUAL),
        table("kv"),
        completed=(ended,),
        deleted_streams={f"{SCOPE}/gone": 0},
        deleted_tables={f"{SCOPE}/gone": 2},
    )
    cluster = Cluster(Original(), take(here, NOW).backed_up, tmp_path)
    del cluster.original.nodes.all[CONTROLLER]
    first, second = await cluster.export(), await cluster.export()
    assert first["changes"] > 0 and (second["changes"], second["left"]) == (0, [])
    found = await cluster.dump()
    assert not [p for p in (await Inspector(found).run(unseen)).problems if p.invariant != 7]
    (scope,) = found.scopes()
    tags = {key: one.values for key, one in scope.tables.items() if key.startswith("tags-") and one.entries}
    assert {key: sorted(values) for key, values in tags.items()} == {f"tags-{tables.chunk_of_tags('st')}": ["a", "b"]}
    assert len([key for key in scope.tables if key.startswith("tags-")]) == tables.TAG_CHUNKS
    came, was = await cluster.back(), cluster.states
    assert came.transactions == was.transactions
    # Ids of scopes, streams and tables are new, and no client knows them.
    assert {name: forgetting(state) for name, state in came.states.items()} == {
        name: forgetting(state) for name, state in was.states.items()
    }


def forgetting(state: Any) -> Any:
    return msgspec.structs.replace(state, creation_id="") if hasattr(state, "creation_id") else state


async def test_after_changes_of_all_kinds_it_says_what_is_so_now_and_nothing_of_before(tmp_path: Path) -> None:
    cluster = await taken_over(tmp_path)
    states, original = cluster.states.states, cluster.original
    assert (await cluster.export())["changes"] > 0
    assert known(await cluster.back()) == known(cluster.states)
    # Of the time before: an open transaction, a request, a hint.
    open_then = r.ActiveTransaction(T, T, T, r.TransactionStatus.OPEN)
    await original.put_transactions("orders", 2, {transaction(2, 5): open_then})
    await original.put_values(METADATA, {"waitingRequestProcessor": b"CommitRequestHandler"})
    original.nodes.all |= {"hostRequestIndex/one/event": b"", "hostTxnIndex/one/shop_%_orders": b"", "buckets/0": b""}
    original.nodes.all |= {f"watermarks/{number}": b"" for number in range(100)}
    orders = states["stream:shop/orders"]
    growing = GrowingStream(first=7)
    growing.scale(0, 1, 2)
    growing.name = "new"
    made = take(MemoryOriginal(growing.stream()), NOW).backed_up.states[f"stream:{SCOPE}/new"]
    states["stream:shop/new"] = msgspec.structs.replace(made, id=StreamId("shop", "new"), created_at=T + 1)
    orders.writers = {"till": WriterTime(5, {3: 1})}
    orders.state, orders.subscribers = StreamState.SEALED, {}
    states["stream:shop/orders"] = orders
    for gone in ("stream:shop/_RGtill", "stream:shop/_MARK_RGtill"):
        states[gone] = DeletedStream(1)
    del states["group:shop/till"]
    states["table:shop/stock"] = DeletedTable(3)
    changed = await cluster.export()
    assert changed["changes"] > 0 and (await cluster.export())["changes"] == 0
    found = await cluster.dump()
    (scope,) = found.cluster.scopes.values()
    assert sorted(scope.streams) == ["_MARKorders", "new", "orders"]
    assert (scope.groups, scope.tables) == ({}, {}) and scope.streams["orders"] == id_of("orders")
    assert found.cluster.deleted_streams == {"shop/gone": 4, "shop/_RGtill": 0, "shop/_MARK_RGtill": 0}
    assert found.cluster.deleted_tables == {"shop/stock": 2}
    assert not any(name.startswith("_system/_tables/shop/_readergroups") for name in original.store.segments)
    (sealed,) = (t for t in found.things() if isinstance(t, model.Stream) and t.name == "orders")
    assert sealed.metadata is not None and sealed.metadata.waiting is None and not sealed.transactions
    assert not [path for path in found.nodes() if path.startswith("host") and "/" in path]
    assert "watermarks/18/c2hvcC9vcmRlcnM=" in found.nodes()
    came = await cluster.back()
    assert came.states["stream:shop/orders"] == states["stream:shop/orders"]
    assert forgetting(came.states["stream:shop/new"]) == forgetting(states["stream:shop/new"])


async def test_what_was_left_out_or_was_just_being_created_stays_as_it_is(tmp_path: Path) -> None:
    left = ("stream shop/orders", "reader group shop/till", "stream shop/_RGtill", "table shop/stock")
    cluster = await taken_over(tmp_path, left)
    was = await cluster.dump()
    assert sorted((await cluster.export())["left"]) == sorted(
        [*left, "stream shop/_MARKorders", "stream shop/_MARK_RGtill"]
    )
    now = await cluster.dump()
    assert list(now.names()) == list(was.names())
    assert [now[name] for name in now.names()] == [was[name] for name in was.names()]


def scaling(states: dict[str, Any]) -> None:
    orders = states["stream:shop/orders"]
    orders.workflow = StreamWorkflow(WorkflowKind.SCALE_STREAM, None, NOW)
    states["stream:shop/orders"] = orders


def restored(states: dict[str, Any]) -> None:
    orders: Stream = states["stream:shop/orders"]
    orders.history.add(Epoch(99, 99, NOW, orders.active_epoch.segments), (), ())
    orders.active = 99
    states["stream:shop/orders"] = orders


def cut_up(states: dict[str, Any]) -> None:
    group = states["group:shop/till"]
    group.config = msgspec.structs.replace(group.config, starts={"shop/orders": dict.fromkeys(range(70_000), 0)})
    states["group:shop/till"] = group


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (scaling, "stream shop/orders: scale-stream is under way"),
        (restored, "stream shop/orders: its epochs are not numbered without gaps"),
        (cut_up, "group shop/till: its entry configuration would have"),
    ],
)
async def test_what_the_tables_cannot_say_is_named_and_nothing_is_written(
    change: Callable[[Any], None], reason: str, tmp_path: Path
) -> None:
    cluster = await taken_over(tmp_path)
    was = await cluster.dump()
    change(cluster.states.states)
    cluster.states.transactions["shop/new"] = StreamTransactions(open={f"{UUID(int=1)}": None})
    with pytest.raises(RefusedError, match=reason) as refused:
        await cluster.export()
    assert "stream shop/new: 1 transactions have not ended" in f"{refused.value}"
    now = await cluster.dump()
    assert [now[name] for name in now.names()] == [was[name] for name in was.names()]


async def test_it_waits_for_all_controllers_to_have_ended(tmp_path: Path) -> None:
    cluster = await taken_over(tmp_path)
    cluster.original.nodes.all[CONTROLLER] = b""
    with pytest.raises(RefusedError, match="controllers are registered in ZooKeeper: one"):
        await cluster.export()


async def test_a_lost_reply_is_no_other_writer_and_the_export_goes_on_when_repeated(tmp_path: Path) -> None:
    cluster = await taken_over(tmp_path)

    async def lose(moment: str, request: str, segment: str) -> None:
        if (moment, request, segment) == ("after", "UpdateTableEntries", METADATA):
            cluster.original.store.fault = None
            raise ConnectionClosed(request, segment, "store")

    cluster.original.store.fault = lose
    with pytest.raises(CommandError, match="closed the connection") as failed:
        await cluster.export()
    assert "repeat the command" in failed.value.hint
    await cluster.export()


async def test_another_writer_is_noticed(tmp_path: Path) -> None:
    cluster = await taken_over(tmp_path)

    async def write_too(moment: str, request: str, segment: str) -> None:
        if (moment, request, segment) == ("before", "UpdateTableEntries", METADATA):
            cluster.original.store.fault = None
            await cluster.original.put_values(METADATA, {"retention": b"", "state": b""})

    cluster.original.store.fault = write_too
    with pytest.raises(CommandError, match="was changed meanwhile"):
        await cluster.export()
