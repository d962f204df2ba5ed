"""Jobs that describe a stream, a scope, a reader group, a key-value table or the cluster as it was at a moment.

A description has the form of the API's, with `at`, and with `asOf`, the last record of the journal that it takes in.
"""

from dataclasses import replace
from typing import TypeVar

import msgspec

from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.domain.ids import GroupId, StreamId, TableId
from sluice.domain.listings import members_of
from sluice.domain.reader_group.state import find_group
from sluice.domain.scope.state import Scope, find_scope
from sluice.domain.stream.state import DeletedStream, Stream
from sluice.domain.table.state import DeletedTable, Table
from sluice.engine.fold import PartitionView
from sluice.insight.cluster import ContainerMap, MemberList, containers_shown, members_shown
from sluice.insight.groups import GroupDescription, group_shown
from sluice.insight.placement import Placement
from sluice.insight.scopes import ScopeDescription, scope_shown
from sluice.insight.shown import Moment, RecordOffset, Shown
from sluice.insight.streams import StreamDescription, stream_shown
from sluice.insight.tables import TableDescription, table_shown
from sluice.lookback.errors import NotFoundError
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.times import show_time


class ResourceQuestion(msgspec.Struct, frozen=True):
    """What is described, and the moment in epoch ms; `containers` is how many segment containers there are."""

    scope: str
    name: str
    at_ms: int
    containers: int = 0


class ScopeQuestion(msgspec.Struct, frozen=True):
    """Which scope, and the moment in epoch ms."""

    scope: str
    at_ms: int


class ClusterQuestion(msgspec.Struct, frozen=True):
    """The moment in epoch ms, and how many segment containers there are."""

    at_ms: int
    containers: int


class ClusterDescription(Shown):
    """The container map and the members."""

    containers: ContainerMap
    members: MemberList


MomentT = TypeVar("MomentT", bound=Moment)


def _stream(context: JobContext, question: ResourceQuestion) -> StreamDescription:
    id = StreamId(question.scope, question.name)
    partition, view = _view(context, id.key, question.at_ms)
    state = view.get(id.aggregate)
    if not isinstance(state, Stream):
        raise _absent(f"stream {id}", question.at_ms, was_deleted=isinstance(state, DeletedStream))
    return _past(stream_shown(view, state, Placement(question.containers)), question.at_ms, partition, view)


def _group(context: JobContext, question: ResourceQuestion) -> GroupDescription:
    id = GroupId(question.scope, question.name)
    partition, view = _view(context, id.key, question.at_ms)
    group = find_group(view, id)
    if group is None:
        raise _absent(f"reader group {id}", question.at_ms)
    return _past(group_shown(group), question.at_ms, partition, view)


def _table(context: JobContext, question: ResourceQuestion) -> TableDescription:
    id = TableId(question.scope, question.name)
    partition, view = _view(context, id.key, question.at_ms)
    state = view.get(id.aggregate)
    if not isinstance(state, Table):
        raise _absent(f"key-value table {id}", question.at_ms, was_deleted=isinstance(state, DeletedTable))
    return _past(table_shown(state, Placement(0)), question.at_ms, partition, view)


def _scope(context: JobContext, question: ScopeQuestion) -> ScopeDescription:
    own, view = _view(context, question.scope, question.at_ms)
    scope: Scope | None = find_scope(view, question.scope)
    if scope is None:
        raise _absent(f"scope {question.scope}", question.at_ms)
    members = [members_of(one, question.scope) for one in context.views_before(question.at_ms)]
    return _past(scope_shown(scope, members), question.at_ms, own, view)


def _cluster(context: JobContext, question: ClusterQuestion) -> ClusterDescription:
    partition, view = _view(context, CLUSTER, question.at_ms)
    cluster = cluster_of(view)
    return ClusterDescription(
        containers=_past(containers_shown(cluster, question.containers), question.at_ms, partition, view),
        members=_past(MemberList(items=members_shown(cluster)), question.at_ms, partition, view),
    )


def _view(context: JobContext, key: str, at_ms: int) -> tuple[int, PartitionView]:
    partition = context.partition_of(key)
    return partition, context.view_before(partition, at_ms)


def _past(shown: MomentT, at_ms: int, partition: int, view: PartitionView) -> MomentT:
    return replace(shown, at=at_ms, as_of=RecordOffset(partition=partition, offset=view.next_offset - 1))


def _absent(what: str, at_ms: int, *, was_deleted: bool = False) -> NotFoundError:
    deleted = ": it was deleted before" if was_deleted else ""
    return NotFoundError(f"{what} did not exist at {show_time(at_ms)}{deleted}")


STREAM = Job("describe-stream", ResourceQuestion, StreamDescription, _stream)
GROUP = Job("describe-group", ResourceQuestion, GroupDescription, _group)
TABLE = Job("describe-table", ResourceQuestion, TableDescription, _table)
SCOPE = Job("describe-scope", ScopeQuestion, ScopeDescription, _scope)
CLUSTER_AT = Job("describe-cluster", ClusterQuestion, ClusterDescription, _cluster)
