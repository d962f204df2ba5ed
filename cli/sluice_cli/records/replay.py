"""Streams and scopes as they were, in the form in which the API describes them as they are.

What the journal does not know is left out: which segment store had a segment, where reading was.
"""

from typing import Any

import msgspec

from sluice.domain.config import RetentionPolicy, RetentionType, ScaleType, ScalingPolicy, StreamConfig
from sluice.domain.ids import ResourceKind, StreamId
from sluice.domain.listings import members_of
from sluice.domain.names import mark_stream, scope_aggregate
from sluice.domain.scope.state import Scope
from sluice.domain.segment import epoch_of, number_of
from sluice.domain.stream.decisions import last_decisions
from sluice.domain.stream.queries import head
from sluice.domain.stream.state import DeletedStream, Stream, StreamState
from sluice.domain.transaction.index import transactions_of
from sluice.domain.workflow import Workflow, running
from sluice.engine.partition import partition_of
from sluice_cli.errors import RefusedError
from sluice_cli.output import Progress
from sluice_cli.records.as_of import Cause, Past, all_past_of, past_of
from sluice_cli.records.source import Source
from sluice_cli.units import show_time

_SCALE_NAMES = {ScaleType.FIXED: "fixed", ScaleType.EVENTS: "events", ScaleType.KBYTES: "kbytes"}
_RETENTION_NAMES = {RetentionType.SIZE: "size", RetentionType.TIME: "time"}


def stream_at(source: Source, scope: str, name: str, at_ms: int, progress: Progress) -> dict[str, Any]:
    """The description of a stream at a moment. Raises RefusedError if there was none."""
    aggregate = StreamId(scope, name).aggregate
    past = past_of(source, StreamId(scope, name).key, frozenset((aggregate,)), at_ms, progress)
    state, cause = past.view.get(aggregate), past.causes.get(aggregate)
    if not isinstance(state, Stream) or cause is None:
        raise _absent(f"stream {scope}/{name}", at_ms, cause if isinstance(state, DeletedStream) else None)
    return {**_stream(past, state), "at": at_ms, "record": _record(cause)}


def scope_at(source: Source, name: str, at_ms: int, progress: Progress) -> dict[str, Any]:
    """The description of a scope at a moment, with its names. Raises RefusedError if there was none."""
    aggregate = scope_aggregate(name)
    everything = all_past_of(source, frozenset((aggregate,)), at_ms, progress)
    past = everything[partition_of(name, len(everything))]
    state, cause = past.view.get(aggregate), past.causes.get(aggregate)
    if not isinstance(state, Scope) or cause is None:
        raise _absent(f"scope {name}", at_ms, cause)
    members = [members_of(one.view, name) for one in everything]
    names = {
        kind: sorted(found for one in members for found in one.after(kind, "", internal=False)) for kind in ResourceKind
    }
    return {
        "name": state.name,
        "createdAt": state.created_at,
        "streams": len(names[ResourceKind.STREAM]),
        "internalStreams": sum(one.internal_streams for one in members),
        "readerGroups": len(names[ResourceKind.READER_GROUP]),
        "tables": len(names[ResourceKind.TABLE]),
        "names": {
            "streams": names[ResourceKind.STREAM],
            "readerGroups": names[ResourceKind.READER_GROUP],
            "tables": names[ResourceKind.TABLE],
        },
        **_workflow(running(state)),
        "at": at_ms,
        "record": _record(cause),
    }


def _absent(what: str, at_ms: int, deleted: Cause | None) -> RefusedError:
    if deleted is None:
        return RefusedError(
            f"{what} did not exist at {show_time(at_ms)}",
            "was its name another one, or the time a later one? A restored journal knows nothing of the time before it",
        )
    return RefusedError(
        f"{what} did not exist at {show_time(at_ms)}: it was deleted at {show_time(deleted.at)}",
        f"the record {deleted.partition}@{deleted.offset} of the journal did that; give a time before it",
    )


def _stream(past: Past, stream: Stream) -> dict[str, Any]:
    transactions = transactions_of(past.view, stream.id)
    commits = past.view.get(stream.id.commits)
    segments = [] if stream.state is StreamState.SEALED else stream.active_segments()
    return {
        "scope": stream.id.scope,
        "name": stream.id.name,
        "state": stream.state.value,
        "epoch": stream.active_epoch.number,
        "createdAt": stream.created_at,
        "config": _config(stream.config),
        "segments": [
            {"id": s.id, "number": number_of(s.id), "epoch": epoch_of(s.id), "low": s.low, "high": s.high}
            for s in segments
        ],
        "headCut": _cut(head(stream)),
        "truncatedBytes": stream.cut_size,
        **_workflow(running(stream) or running(commits)),
        **({"waiting": {"kind": stream.waiting.kind, "at": stream.waiting.at}} if stream.waiting else {}),
        "transactions": {
            "open": len(transactions.open),
            "waiting": len(transactions.committing),
            "aborting": len(transactions.aborting),
        },
        "subscribers": [
            {
                "name": name,
                "groupId": known.group_id,
                "generation": known.generation,
                "updatedAt": known.updated_at,
                "cut": _cut(known.cut),
            }
            for name, known in sorted(stream.subscribers.items())
        ],
        "decisions": [
            {"kind": kind.value, "code": noted.code, "reason": noted.reason, "at": noted.at}
            for kind, noted in last_decisions(stream)
        ],
        "markStream": mark_stream(stream.id.name),
        **({"watermark": msgspec.to_builtins(stream.watermark)} if stream.watermark else {}),
    }


def _config(config: StreamConfig) -> dict[str, Any]:
    return {
        "scaling": _scaling(config.scaling),
        **({"retention": _retention(config.retention)} if config.retention else {}),
        "tags": list(config.tags),
        "rolloverSizeBytes": config.rollover_size_bytes,
        "timestampAggregationTimeout": config.timestamp_aggregation_timeout_ms,
    }


def _scaling(scaling: ScalingPolicy) -> dict[str, Any]:
    return {
        "type": _SCALE_NAMES[scaling.scale_type],
        "targetRate": scaling.target_rate,
        "scaleFactor": scaling.scale_factor,
        "minSegments": scaling.min_segments,
    }


def _retention(retention: RetentionPolicy) -> dict[str, Any]:
    return {"type": _RETENTION_NAMES[retention.retention_type], "min": retention.minimum, "max": retention.maximum}


def _workflow(workflow: Workflow | None) -> dict[str, Any]:
    if workflow is None:
        return {}
    return {
        "workflow": {
            "id": workflow.id,
            "kind": workflow.kind.value,
            "step": workflow.step,
            "since": workflow.since,
            "attempts": workflow.attempts,
            "lastError": workflow.last_error,
            "retryRequests": workflow.retry_requests,
            "cancelled": workflow.cancelled,
        }
    }


def _cut(cut: dict[int, int]) -> dict[str, int]:
    return {str(segment): offset for segment, offset in sorted(cut.items())}


def _record(cause: Cause) -> dict[str, Any]:
    return {
        "partition": cause.partition,
        "offset": cause.offset,
        "at": cause.at,
        "types": list(cause.types),
        "by": cause.by,
        **({"request": cause.request} if cause.request else {}),
    }
