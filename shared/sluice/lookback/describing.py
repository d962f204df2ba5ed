"""Jobs that describe a stream, a scope, a reader group, a key-value table or the cluster as it was at a moment.

A description has the form of the API's, with `at`, and with `asOf`, the last record of the journal that it takes in.
"""

from typing import Any

import msgspec

from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.domain.ids import GroupId, StreamId, TableId
from sluice.domain.listings import members_of
from sluice.domain.reader_group.state import find_group
from sluice.domain.scope.state import Scope, find_scope
from sluice.domain.stream.state import DeletedStream, Stream
from sluice.domain.table.state import DeletedTable, Table
from sluice.engine.fold import PartitionView
from sluice.lookback.descriptions import (
    containers_description,
    group_description,
    members_description,
    scope_description,
    stream_description,
    table_description,
)
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
    """The moment in epoch ms."""

    at_ms: int


class Description(msgspec.Struct, frozen=True):
    """As JSON has it."""

    document: dict[str, Any]


class ClusterDescription(msgspec.Struct, frozen=True):
    """The container map and the members, each as JSON has it."""

    containers: dict[str, Any]
    members: dict[str, Any]


def _stream(context: JobContext, question: ResourceQuestion) -> Description:
    id = StreamId(question.scope, question.name)
    partition, view = _view(context, id.key, question.at_ms)
    state = view.get(id.aggregate)
    if not isinstance(state, Stream):
        raise _absent(f"stream {id}", question.at_ms, was_deleted=isinstance(state, DeletedStream))
    return _description(stream_description(view, state, question.containers), question.at_ms, partition, view)


def _group(context: JobContext, question: ResourceQuestion) -> Description:
    id = GroupId(question.scope, question.name)
    partition, view = _view(context, id.key, question.at_ms)
    group = find_group(view, id)
    if group is None:
        raise _absent(f"reader group {id}", question.at_ms)
    return _description(group_description(group), question.at_ms, partition, view)


def _table(context: JobContext, question: ResourceQuestion) -> Description:
    id = TableId(question.scope, question.name)
    partition, view = _view(context, id.key, question.at_ms)
    state = view.get(id.aggregate)
    if not isinstance(state, Table):
        raise _absent(f"key-value table {id}", question.at_ms, was_deleted=isinstance(state, DeletedTable))
    return _description(table_description(state), question.at_ms, partition, view)


def _scope(context: JobContext, question: ScopeQuestion) -> Description:
    own, view = _view(context, question.scope, question.at_ms)
    scope: Scope | None = find_scope(view, question.scope)
    if scope is None:
        raise _absent(f"scope {question.scope}", question.at_ms)
    members = [members_of(one, question.scope) for one in context.views_before(question.at_ms)]
    return _description(scope_description(members, scope), question.at_ms, own, view)


def _cluster(context: JobContext, question: ClusterQuestion) -> ClusterDescription:
    partition, view = _view(context, CLUSTER, question.at_ms)
    cluster, as_of = cluster_of(view), _as_of(question.at_ms, partition, view)
    return ClusterDescription({**containers_description(cluster), **as_of}, {**members_description(cluster), **as_of})


def _view(context: JobContext, key: str, at_ms: int) -> tuple[int, PartitionView]:
    partition = context.partition_of(key)
    return partition, context.view_before(partition, at_ms)


def _description(document: dict[str, Any], at_ms: int, partition: int, view: PartitionView) -> Description:
    return Description({**document, **_as_of(at_ms, partition, view)})


def _as_of(at_ms: int, partition: int, view: PartitionView) -> dict[str, Any]:
    return {"at": at_ms, "asOf": {"partition": partition, "offset": view.next_offset - 1}}


def _absent(what: str, at_ms: int, *, was_deleted: bool = False) -> NotFoundError:
    deleted = ": it was deleted before" if was_deleted else ""
    return NotFoundError(f"{what} did not exist at {show_time(at_ms)}{deleted}")


STREAM = Job("describe-stream", ResourceQuestion, Description, _stream)
GROUP = Job("describe-group", ResourceQuestion, Description, _group)
TABLE = Job("describe-table", ResourceQuestion, Description, _table)
SCOPE = Job("describe-scope", ScopeQuestion, Description, _scope)
CLUSTER_AT = Job("describe-cluster", ClusterQuestion, ClusterDescription, _cluster)
