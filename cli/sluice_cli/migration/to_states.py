"""All that an original knows, as the states that Sluice goes on with: what a restore of a back-up brings, too.

Whatever was being created when it ended is left out: no client learned that it exists, and a repeated request creates
it. What is deleted goes on to be deleted. `shared/sluice/domain/restoring/repair.py` then makes groups and the streams
that they hold back fit each other. A pure function of the original and the time.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import msgspec

from sluice.backup.states import BackedUp, EncodedStates
from sluice.domain.cluster.state import CLUSTER, Cluster
from sluice.domain.config import GroupRetention, ReaderGroupConfig, TableConfig
from sluice.domain.ids import GroupId, StreamId, TableId
from sluice.domain.names import MARK_PREFIX, READER_GROUP_PREFIX, base_name, group_stream, scope_aggregate
from sluice.domain.reader_group.state import GroupState, GroupWorkflow, ReaderGroup
from sluice.domain.restoring.repair import repair
from sluice.domain.scope.state import Scope
from sluice.domain.segment import Segment
from sluice.domain.stream.state import DeletedStream
from sluice.domain.table.state import DeletedTable, Table, TableState
from sluice.domain.transaction.index import StreamTransactions
from sluice.domain.workflow import Workflow, WorkflowKind
from sluice_cli.errors import RefusedError
from sluice_cli.migration import model, records
from sluice_cli.migration.invariants import Judge, is_created, name_of, state_of
from sluice_cli.migration.to_stream import UnfitError, stream_of
from sluice_cli.migration.to_transactions import ended_only, transactions_of

GROUP_RETENTIONS = tuple(GroupRetention)

ABOVE_ALL = 1 << 30
"""Where the numbers of a later thing begin whose namesake was left out: no segment of that has come so far."""


class Taken(msgspec.Struct):
    """The states, and what users should know of them."""

    states: EncodedStates
    transactions: dict[str, StreamTransactions]
    remarks: list[str]

    @property
    def backed_up(self) -> BackedUp:
        """The same as a back-up has it; nothing is renumbered."""
        return BackedUp(self.states, self.transactions, -1, 0)


class _Importer:
    """`left_out` are the things that a user does not want, as messages name them."""

    def __init__(self, original: model.Original, now: int, left_out: Collection[str]) -> None:
        self._cluster = original.cluster
        self._judge = Judge(self._cluster)
        self._now = now
        self._left_out = _with_what_belongs(self._cluster, left_out)
        self._groups = {
            f"{scope.name}/{name}": str(id)
            for scope in self._cluster.scopes.values()
            for name, id in scope.groups.items()
            if f"reader group {scope.name}/{name}" not in self._left_out
        }
        self._completed: Mapping[str, list[model.CompletedTransaction]] = defaultdict(list)
        for one in self._cluster.completed:
            self._completed[f"{one.scope}/{one.stream}"].append(one)
        self.taken = Taken(EncodedStates(), {}, [])

    def run(self, things: Iterator[model.Thing | model.Unreadable]) -> Taken:
        for scope in self._cluster.scopes.values():
            kind = WorkflowKind.DELETE_SCOPE_RECURSIVE
            workflow = Workflow(kind, None, self._now) if scope.deleting else None
            self.taken.states[scope_aggregate(scope.name)] = Scope(scope.name, str(scope.id), self._now, workflow)
        # Else gateways would not know where a segment is until a cluster-manager has looked.
        containers = self._cluster.containers
        self.taken.states[CLUSTER] = Cluster(containers, tuple(sorted(set(containers.values()))))
        self._add_deleted()
        for thing in things:
            if name_of(thing) in self._left_out:
                self._leave_out(thing)
            elif isinstance(thing, model.Unreadable):
                raise UnfitError(name_of(thing), thing.why)
            else:
                self._add(thing)
        self._drop_what_belongs_to_nothing()
        self.taken.remarks += repair(self.taken.states, f"imported-{self._now:x}", self._now)
        return self.taken

    def _add_deleted(self) -> None:
        """Numbers of what was deleted; what exists under such a name takes its place."""
        for name, last in self._cluster.deleted_streams.items():
            id = StreamId.of(name)
            self.taken.states[id.aggregate] = DeletedStream(last + 1)
            if name in self._completed:
                self.taken.transactions[id.transactions] = ended_only(self._completed[name])
        for name, last in self._cluster.deleted_tables.items():
            scope, _, table = name.partition("/")
            self.taken.states[TableId(scope, table).aggregate] = DeletedTable(last + 1)

    def _leave_out(self, thing: model.Thing | model.Unreadable) -> None:
        """Its numbers stay used: a later thing of the name must not meet its segments."""
        self.taken.remarks.append(f"{name_of(thing)}: it is left out")
        kind = thing.kind if isinstance(thing, model.Unreadable) else type(thing)
        if kind is model.Stream:
            self.taken.states[StreamId(thing.scope, thing.name).aggregate] = DeletedStream(ABOVE_ALL)
        elif kind is model.KeyValueTable:
            self.taken.states[TableId(thing.scope, thing.name).aggregate] = DeletedTable(ABOVE_ALL)

    def _add(self, thing: model.Thing) -> None:
        for problem in self._judge.of(thing):
            if problem.stops:
                raise UnfitError(name_of(thing), problem.what)
        match thing:
            case model.Stream():
                self._add_stream(thing)
            case model.ReaderGroup():
                self._add_group(thing)
            case model.KeyValueTable():
                self._add_table(thing)

    def _add_stream(self, found: model.Stream) -> None:
        id = StreamId(found.scope, found.name)
        if not is_created(found):
            self.taken.remarks.append(f"{id}: its creation had not ended: it is not there, and can be created")
        else:
            stream, remarks = stream_of(found, self._creation_of(id, found), self._groups, self._now)
            known = self._cluster.deleted_streams.get(f"{id}", -1)
            stream.next_number = max(stream.next_number, known + 1)
            self.taken.remarks += remarks
            completed = self._completed.get(f"{id}", [])
            made = transactions_of(found, stream, completed, self._now)
            self.taken.states[id.aggregate] = stream
            if not made.index.is_empty:
                self.taken.transactions[id.transactions] = made.index
            for transaction in made.live:
                self.taken.states[transaction.id.aggregate] = transaction
            if made.commits is not None:
                self.taken.states[id.commits] = made.commits

    def _creation_of(self, id: StreamId, found: model.Stream) -> str:
        """What is created along with something else has the creation id of that."""
        scope, base = self._cluster.scopes[id.scope], base_name(id.name)
        group = base.removeprefix(READER_GROUP_PREFIX)
        if base != group and group in scope.groups:
            return str(scope.groups[group])
        return str(scope.streams.get(base, found.id))

    def _add_group(self, found: model.ReaderGroup) -> None:
        id, meta = GroupId(found.scope, found.name), found.metadata
        state = state_of(meta)
        if meta is None or state is records.ThingState.CREATING:
            self.taken.remarks.append(f"reader group {id}: its creation had not ended: it can be created")
            return
        assert meta.configuration is not None and meta.creation_ms is not None
        config = _group_config(meta.configuration, f"{found.id}")
        workflow = None
        if state is records.ThingState.DELETING:
            leaves = tuple(sorted(config.starts)) if config.subscribes() else ()
            workflow = GroupWorkflow(WorkflowKind.DELETE_GROUP, None, self._now, leaves=leaves)
        made = GroupState.ACTIVE if workflow is None else GroupState.DELETING
        group = ReaderGroup(id, f"{found.id}", made, config, meta.creation_ms, workflow)
        self.taken.states[id.aggregate] = group

    def _add_table(self, found: model.KeyValueTable) -> None:
        id, meta = TableId(found.scope, found.name), found.metadata
        state = state_of(meta)
        if meta is None or state is records.ThingState.CREATING:
            self.taken.remarks.append(f"table {id}: its creation had not ended: it can be created")
            return
        config, in_order = meta.configuration, sorted(meta.epochs[0].segments, key=lambda s: s.low)
        assert config is not None and meta.creation_ms is not None
        segments = tuple(Segment(s.id, s.low, s.high) for s in in_order)
        is_deleted = state is records.ThingState.DELETING
        self.taken.states[id.aggregate] = Table(
            id=id,
            creation_id=f"{found.id}",
            state=TableState.DELETING if is_deleted else TableState.ACTIVE,
            config=TableConfig(config.partitions, config.primary_key_length, config.secondary_key_length),
            created_at=meta.creation_ms,
            segments=segments,
            workflow=Workflow(WorkflowKind.DELETE_TABLE, None, self._now) if is_deleted else None,
        )

    def _drop_what_belongs_to_nothing(self) -> None:
        """Mark streams without their stream, and state streams of groups that were being created."""
        for scope in self._cluster.scopes.values():
            for name in sorted(scope.streams, key=lambda name: name.startswith(MARK_PREFIX)):
                id, base = StreamId(scope.name, name), StreamId(scope.name, base_name(name))
                group = GroupId(scope.name, name.removeprefix(READER_GROUP_PREFIX))
                is_mark = name.startswith(MARK_PREFIX) and base != id
                is_state = name.startswith(READER_GROUP_PREFIX) and group.name in scope.groups
                owner = base.aggregate if is_mark else group.aggregate if is_state else id.aggregate
                if owner == id.aggregate or id.aggregate not in self.taken.states:
                    continue
                there = self.taken.states.get(owner)
                if there is None or isinstance(there, DeletedStream):
                    left = self.taken.states[id.aggregate]
                    self.taken.states[id.aggregate] = DeletedStream(left.next_number)
                    self.taken.remarks.append(f"{id}: it belongs to nothing, and is not there")


def _with_what_belongs(cluster: model.Cluster, names: Collection[str]) -> frozenset[str]:
    """These things, the mark streams of streams, and the group of a stream of one. Raises RefusedError."""
    known = {
        f"{kind} {scope.name}/{name}"
        for scope in cluster.scopes.values()
        for kind, found in (("stream", scope.streams), ("reader group", scope.groups), ("table", scope.tables))
        for name in found
    }
    unknown = sorted(set(names) - known)
    if unknown:
        raise RefusedError(
            f"there is nothing of the name to leave out: {', '.join(unknown)}",
            "name a thing with its kind: stream SCOPE/NAME, reader group SCOPE/NAME or table SCOPE/NAME",
        )
    left = set(names)
    for scope in cluster.scopes.values():
        for name in scope.streams:
            if f"stream {scope.name}/{base_name(name)}" in left:
                left.add(f"stream {scope.name}/{name}")
        for name in scope.groups:
            if f"stream {scope.name}/{group_stream(name)}" in left:
                left.add(f"reader group {scope.name}/{name}")
    return frozenset(left)


def _group_config(found: records.GroupConfiguration, id: str) -> ReaderGroupConfig:
    return ReaderGroupConfig(
        id=id,
        starts={stream: dict(cut.cut) for stream, cut in found.starting.items()},
        ends={stream: dict(cut.cut) for stream, cut in found.ending.items()},
        retention=GROUP_RETENTIONS[found.retention],
        refresh_ms=found.refresh_ms,
        checkpoint_interval_ms=found.automatic_checkpoint_ms,
        max_outstanding_checkpoints=found.max_outstanding_checkpoints,
        generation=found.generation,
    )


def take(original: model.Original, now: int, left_out: Collection[str] = ()) -> Taken:
    """The states at `now`, epoch ms. Raises UnfitError for a thing that is not as it says, unless it is left out.

    Raises RefusedError if what is to be left out is not there.
    """
    importer = _Importer(original, now, left_out)
    return importer.run(original.things())
