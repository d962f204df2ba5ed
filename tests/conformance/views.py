"""What of an answer counts, as plain values: order is dropped where none is promised, names lose the prefix of the run.

Pure functions of a run and an answer.
"""

from collections.abc import Iterable
from typing import Any

from conformance.run import Run
from sluice.controller_api import controller_pb2 as pb

Range = tuple[int, float, float]


def status(_run: Run, answer: Any) -> str:
    """The name of the status, whatever the field is called."""
    field = next(name for name in ("status", "result", "state") if name in answer.DESCRIPTOR.fields_by_name)
    return _name_of(answer, field)


def _name_of(answer: Any, field: str) -> str:
    name: str = answer.DESCRIPTOR.fields_by_name[field].enum_type.values_by_number[getattr(answer, field)].name
    return name


def exists(_run: Run, answer: pb.ExistsResponse) -> bool:
    return answer.exists


def validity(_run: Run, answer: Any) -> bool:
    return bool(answer.response)


def ranges(_run: Run, answer: pb.SegmentRanges) -> list[Range]:
    """In the order given: by key is promised."""
    return [_range(one) for one in answer.segmentRanges]


def _range(one: pb.SegmentRange) -> Range:
    return one.segmentId.segmentId, one.minKey, one.maxKey


def stream_names(run: Run, answer: pb.SegmentRanges) -> set[str]:
    """What the segments say they belong to."""
    return {name_of(run, one.segmentId.streamInfo) for one in answer.segmentRanges}


def name_of(run: Run, info: pb.StreamInfo) -> str:
    return f"{run.short(info.scope)}/{info.stream}"


def head(_run: Run, answer: pb.SegmentsAtTime) -> dict[int, int]:
    return {one.segmentId.segmentId: one.offset for one in answer.segments}


def successors(_run: Run, answer: pb.SuccessorResponse) -> dict[int, tuple[float, float, list[int]]]:
    """By id: the range, and the ids of the segments replaced."""
    found = {}
    for entry in answer.segments:
        id, low, high = _range(entry.segment)
        found[id] = (low, high, sorted(entry.value))
    return found


def segment_ids(_run: Run, answer: pb.StreamCutRangeResponse) -> list[int]:
    return sorted(one.segmentId for one in answer.segments)


def scaled(_run: Run, answer: pb.ScaleResponse) -> tuple[str, int, list[int], list[tuple[float, float]]]:
    """Status, epoch before, new ids, new ranges; which range gets which id is not promised."""
    new = [_range(one) for one in answer.segments]
    return _name_of(answer, "status"), answer.epoch, sorted(id for id, *_ in new), sorted((a, b) for _, a, b in new)


def transaction(_run: Run, answer: pb.CreateTxnResponse) -> tuple[int, list[Range]]:
    """The epoch in the id, and the segments in the order given: by key is promised."""
    return answer.txnId.highBits >> 32, [_range(one) for one in answer.activeSegments]


def configuration(run: Run, answer: pb.StreamConfig) -> dict[str, Any]:
    scaling, retention = answer.scalingPolicy, answer.retentionPolicy
    return {
        "stream": name_of(run, answer.streamInfo),
        "scaling": (scaling.scaleType, scaling.targetRate, scaling.scaleFactor, scaling.minNumSegments),
        "retention": (retention.retentionType, retention.retentionParam, retention.retentionMax)
        if answer.HasField("retentionPolicy")
        else None,
        "tags": sorted(answer.tags.tag),
        "timeout": answer.timestampAggregationTimeout,
        "rollover": answer.rolloverSizeBytes,
    }


def subscribers(run: Run, answer: pb.SubscribersResponse) -> tuple[str, list[str]]:
    return _name_of(answer, "status"), sorted(run.short(name) for name in answer.subscribers)


def group(run: Run, answer: Any) -> tuple[str, dict[str, Any] | None]:
    """Status and configuration of a reader group; {} for one that is there but empty, None for none at all."""
    config = None
    if answer.HasField("config"):
        config = group_configuration(run, answer.config) if answer.config.ByteSize() else {}
    return _name_of(answer, "status"), config


def group_configuration(run: Run, config: pb.ReaderGroupConfiguration) -> dict[str, Any]:
    return {
        "group": f"{run.short(config.scope)}/{config.readerGroupName}",
        "refresh": config.groupRefreshTimeMillis,
        "checkpoint": config.automaticCheckpointIntervalMillis,
        "outstanding": config.maxOutstandingCheckpointRequest,
        "retention": config.retentionType,
        "generation": config.generation,
        "id": config.readerGroupId,
        "start": cuts(run, config.startingStreamCuts),
        "end": cuts(run, config.endingStreamCuts),
    }


def cuts(run: Run, sent: Iterable[pb.StreamCut]) -> dict[str, dict[int, int]]:
    return {name_of(run, one.streamInfo): dict(one.cut) for one in sent}


def updated_group(_run: Run, answer: pb.UpdateReaderGroupResponse) -> tuple[str, int]:
    return _name_of(answer, "status"), answer.generation


def table(run: Run, answer: pb.KeyValueTableConfigResponse) -> tuple[str, tuple[str, int, int, int] | None]:
    """Status; name, partitions and key lengths."""
    config = answer.config
    shape = (f"{run.short(config.scope)}/{config.kvtName}", config.partitionCount)
    lengths = (config.primaryKeyLength, config.secondaryKeyLength)
    return _name_of(answer, "status"), (*shape, *lengths) if answer.HasField("config") else None


def uri(_run: Run, answer: pb.NodeUri) -> tuple[bool, bool]:
    """Whether there is a host and a port: which ones is the target's business."""
    return bool(answer.endpoint), 0 < answer.port < 65536
