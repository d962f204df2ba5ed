"""Streams, scopes, groups, tables and the cluster as they were, each with the record that made it so."""

from dataclasses import replace
from itertools import chain
from typing import Any

from sluice.domain.cluster.state import CLUSTER, cluster_of
from sluice.domain.ids import GroupId, ResourceKind, StreamId, TableId
from sluice.domain.listings import members_of
from sluice.domain.names import scope_aggregate
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.state import Scope
from sluice.domain.stream.state import DeletedStream, Stream
from sluice.domain.table.state import DeletedTable, Table
from sluice.engine.partition import partition_of
from sluice.insight.cluster import MemberList, containers_shown, members_shown
from sluice.insight.groups import group_shown
from sluice.insight.placement import Placement
from sluice.insight.scopes import scope_shown
from sluice.insight.shown import Moment, document
from sluice.insight.streams import stream_shown
from sluice.insight.tables import table_shown
from sluice.lookback.as_of import Cause, Past, all_past_of, past_of
from sluice.lookback.errors import NotFoundError
from sluice.lookback.progress import Progress
from sluice.lookback.source import Source
from sluice.lookback.times import show_time

_NAMES = {"streams": ResourceKind.STREAM, "readerGroups": ResourceKind.READER_GROUP, "tables": ResourceKind.TABLE}


def stream_at(source: Source, scope: str, name: str, at_ms: int, progress: Progress) -> dict[str, Any]:
    """The description of a stream at a moment. Raises NotFoundError if there was none."""
    id = StreamId(scope, name)
    past, state, cause = _past(source, id.key, id.aggregate, at_ms, progress)
    if not isinstance(state, Stream) or cause is None:
        raise absent(f"stream {id}", at_ms, cause if isinstance(state, DeletedStream) else None)
    return _document(stream_shown(past.view, state, Placement(0)), at_ms, cause)


def group_at(source: Source, scope: str, name: str, at_ms: int, progress: Progress) -> dict[str, Any]:
    """The description of a reader group at a moment. Raises NotFoundError if there was none."""
    id = GroupId(scope, name)
    _, state, cause = _past(source, id.key, id.aggregate, at_ms, progress)
    if not isinstance(state, ReaderGroup) or cause is None:
        raise absent(f"reader group {id}", at_ms, cause)
    return _document(group_shown(state), at_ms, cause)


def table_at(source: Source, scope: str, name: str, at_ms: int, progress: Progress) -> dict[str, Any]:
    """The description of a key-value table at a moment. Raises NotFoundError if there was none."""
    id = TableId(scope, name)
    _, state, cause = _past(source, id.key, id.aggregate, at_ms, progress)
    if not isinstance(state, Table) or cause is None:
        raise absent(f"key-value table {id}", at_ms, cause if isinstance(state, DeletedTable) else None)
    return _document(table_shown(state, Placement(0)), at_ms, cause)


def containers_at(source: Source, at_ms: int, progress: Progress) -> dict[str, Any]:
    """The container map at a moment."""
    past, _, _ = _past(source, CLUSTER, CLUSTER, at_ms, progress)
    return document(replace(containers_shown(cluster_of(past.view), 0), at=at_ms))


def members_at(source: Source, at_ms: int, progress: Progress) -> dict[str, Any]:
    """The members at a moment."""
    past, _, _ = _past(source, CLUSTER, CLUSTER, at_ms, progress)
    return document(MemberList(items=members_shown(cluster_of(past.view)), at=at_ms))


def scope_at(source: Source, name: str, at_ms: int, progress: Progress) -> dict[str, Any]:
    """The description of a scope at a moment, with its names. Raises NotFoundError if there was none."""
    aggregate = scope_aggregate(name)
    everything = all_past_of(source, frozenset((aggregate,)), at_ms, progress)
    past = everything[partition_of(name, len(everything))]
    state, cause = past.view.get(aggregate), past.causes.get(aggregate)
    if not isinstance(state, Scope) or cause is None:
        raise absent(f"scope {name}", at_ms, cause)
    members = [members_of(one.view, name) for one in everything]
    names = {
        key: sorted(chain(*(one.after(kind, "", internal=False) for one in members))) for key, kind in _NAMES.items()
    }
    return {**_document(scope_shown(state, members), at_ms, cause), "names": names}


def absent(what: str, at_ms: int, deleted: Cause | None) -> NotFoundError:
    """Why nothing can be described; `deleted` is what ended it, if that is known."""
    if deleted is None:
        return NotFoundError(
            f"{what} did not exist at {show_time(at_ms)}",
            "was its name another one, or the time a later one? A restored journal knows nothing of the time before it",
        )
    return NotFoundError(
        f"{what} did not exist at {show_time(at_ms)}: it was deleted at {show_time(deleted.at)}",
        f"the record {deleted.partition}@{deleted.offset} of the journal did that; give a time before it",
    )


def _past(source: Source, key: str, aggregate: str, at_ms: int, progress: Progress) -> tuple[Past, Any, Cause | None]:
    past = past_of(source, key, frozenset((aggregate,)), at_ms, progress)
    return past, past.view.get(aggregate), past.causes.get(aggregate)


def _document(shown: Moment, at_ms: int, cause: Cause) -> dict[str, Any]:
    """With the record that made it so."""
    record = {
        "partition": cause.partition,
        "offset": cause.offset,
        "at": cause.at,
        "types": list(cause.types),
        "by": cause.by,
        **({"request": cause.request} if cause.request else {}),
    }
    return {**document(replace(shown, at=at_ms)), "record": record}
