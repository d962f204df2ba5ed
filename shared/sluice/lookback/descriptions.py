"""What there is to know of a stream, scope, group, table and the cluster, in the form in which the API describes them.

Pure. What the journal does not know is left out: which segment store had a segment, where reading was.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from sluice.domain.cluster.state import Cluster
from sluice.domain.config import (
    GroupRetention,
    ReaderGroupConfig,
    RetentionPolicy,
    RetentionType,
    ScalingPolicy,
    StreamConfig,
)
from sluice.domain.ids import ResourceKind
from sluice.domain.listings import Members
from sluice.domain.names import mark_stream
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.state import Scope
from sluice.domain.segment import epoch_of, number_of, segment_name
from sluice.domain.stream.decisions import last_decisions
from sluice.domain.stream.queries import head
from sluice.domain.stream.state import Stream, StreamState
from sluice.domain.table.state import Table
from sluice.domain.transaction.index import transactions_of
from sluice.domain.workflow import Workflow, running
from sluice.engine.fold import PartitionView
from sluice.outages import Outage, outages
from sluice.pravega.routing import container_of

_RETENTION_NAMES = {RetentionType.SIZE: "size", RetentionType.TIME: "time"}
_GROUP_RETENTION_NAMES = {
    GroupRetention.NONE: "none",
    GroupRetention.MANUAL: "manual",
    GroupRetention.AUTOMATIC: "automatic",
}


def scope_description(members: Sequence[Members], scope: Scope) -> dict[str, Any]:
    """`members` are those in all partitions. `names` has what is in it, which the API lists by itself."""
    names = {
        kind: sorted(found for one in members for found in one.after(kind, "", internal=False)) for kind in ResourceKind
    }
    return {
        "name": scope.name,
        "createdAt": scope.created_at,
        "streams": len(names[ResourceKind.STREAM]),
        "internalStreams": sum(one.internal_streams for one in members),
        "readerGroups": len(names[ResourceKind.READER_GROUP]),
        "tables": len(names[ResourceKind.TABLE]),
        "names": {
            "streams": names[ResourceKind.STREAM],
            "readerGroups": names[ResourceKind.READER_GROUP],
            "tables": names[ResourceKind.TABLE],
        },
        **_workflow(running(scope)),
    }


def stream_description(view: PartitionView, stream: Stream, containers: int = 0) -> dict[str, Any]:
    """`containers` is how many there are; 0: which one has a segment is left out."""
    transactions = transactions_of(view, stream.id)
    commits = view.get(stream.id.commits)
    segments = [] if stream.state is StreamState.SEALED else stream.active_segments()
    return {
        "scope": stream.id.scope,
        "name": stream.id.name,
        "state": stream.state.value,
        "epoch": stream.active_epoch.number,
        "createdAt": stream.created_at,
        "config": _config(stream.config),
        "segments": [
            {
                "id": s.id,
                "number": number_of(s.id),
                "epoch": epoch_of(s.id),
                "low": s.low,
                "high": s.high,
                **({"container": container_of(segment_name(*stream.id, s.id), containers)} if containers else {}),
            }
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
            {"kind": kind.value, "code": recorded.code, "reason": recorded.reason, "at": recorded.at}
            for kind, recorded in last_decisions(stream)
        ],
        "markStream": mark_stream(stream.id.name),
        **({"watermark": msgspec.to_builtins(stream.watermark)} if stream.watermark else {}),
    }


def group_description(group: ReaderGroup) -> dict[str, Any]:
    """How far it has read stands in the descriptions of its streams."""
    return {
        "scope": group.id.scope,
        "name": group.id.name,
        "id": group.config.id,
        "generation": group.config.generation,
        "state": group.state.value,
        "createdAt": group.created_at,
        "config": _group_config(group.config),
        **_workflow(running(group)),
    }


def _group_config(config: ReaderGroupConfig) -> dict[str, Any]:
    return {
        "streams": {
            name: {
                **({"start": _cut(start)} if start else {}),
                **({"end": _cut(config.ends[name])} if config.ends.get(name) else {}),
            }
            for name, start in config.starts.items()
        },
        "retention": _GROUP_RETENTION_NAMES[config.retention],
        "refreshMs": config.refresh_ms,
        "checkpointIntervalMs": config.checkpoint_interval_ms,
        "maxOutstandingCheckpoints": config.max_outstanding_checkpoints,
    }


def table_description(table: Table) -> dict[str, Any]:
    """A key-value table, with its partitions."""
    config = table.config
    return {
        "scope": table.id.scope,
        "name": table.id.name,
        "state": table.state.value,
        "createdAt": table.created_at,
        "config": {
            "partitionCount": config.partitions,
            "primaryKeyLength": config.primary_key_length,
            "secondaryKeyLength": config.secondary_key_length,
            "rolloverSizeBytes": config.rollover_size_bytes,
        },
        "segments": [{"id": s.id, "low": s.low, "high": s.high} for s in table.segments],
        **_workflow(running(table)),
    }


def containers_description(cluster: Cluster) -> dict[str, Any]:
    """Which segment store ran which container, and which did not answer; one that no store ran is left out."""
    silent = outages(cluster, 0)
    return {
        "items": [
            {"container": container, "store": str(host), **_silence(silent.get(container))}
            for container, host in sorted(cluster.containers.items())
        ],
        "stores": [str(host) for host in cluster.hosts],
        "assignedAt": cluster.assigned_at,
    }


def _silence(outage: Outage | None) -> dict[str, Any]:
    if outage is None:
        return {}
    store = {"unresponsiveStore": str(outage.store)} if outage.store is not None else {}
    return {"problem": outage.problem, "unresponsiveSince": outage.since, **store}


def members_description(cluster: Cluster) -> dict[str, Any]:
    """The instances of our services, by service and instance."""
    return {
        "items": [
            {
                "service": member.service,
                "instance": member.instance,
                "endpoints": dict(member.endpoints),
                "since": member.since,
            }
            for member in sorted(cluster.members.values(), key=lambda one: (one.service, one.instance))
        ]
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
        "type": scaling.scale_type.word,
        "targetRate": scaling.target_rate,
        "scaleFactor": scaling.scale_factor,
        "minSegments": scaling.min_segments,
    }


def _retention(retention: RetentionPolicy) -> dict[str, Any]:
    return {"type": _RETENTION_NAMES[retention.retention_type], "min": retention.minimum, "max": retention.ceiling}


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
