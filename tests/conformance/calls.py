"""Calls on scopes, streams and their segments, from plain values.

`sc` is the scope of a case and `st` its stream unless another is named. Every call must succeed unless the step says
what it gives. A cut is a dict of segment ids and offsets.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from conformance import views
from conformance.answers import MALFORMED, Such
from conformance.case import Step, call
from conformance.run import Run, ScopeName
from sluice.controller_api import controller_pb2 as pb

Cut = Mapping[int, int]

FIXED, BY_KBYTES, BY_EVENTS = 0, 1, 2
NO_RETENTION, BY_TIME, BY_SIZE = 0, 1, 2
UNBOUNDED = 2**63 - 1


def at(number: int, epoch: int) -> int:
    """The id of a segment."""
    return (epoch << 32) | number


def info(run: Run, stream: str, scope: ScopeName) -> pb.StreamInfo:
    return pb.StreamInfo(scope=run.scope(scope), stream=stream)


# --- scopes


def create_scope(scope: ScopeName = "sc") -> Step:
    return call("createScope", lambda run: pb.ScopeInfo(scope=run.scope(scope)), views.status)


def scope_exists(scope: ScopeName = "sc") -> Step:
    return call("checkScopeExists", lambda run: pb.ScopeInfo(scope=run.scope(scope)), views.exists, success=True)


def delete_scope(scope: ScopeName = "sc") -> Step:
    return call("deleteScope", lambda run: pb.ScopeInfo(scope=run.scope(scope)), views.status)


def delete_scope_recursive(scope: ScopeName = "sc") -> Step:
    return call("deleteScopeRecursive", lambda run: pb.ScopeInfo(scope=run.scope(scope)), views.status)


# --- streams


def configuration(run: Run, stream: str, scope: ScopeName, options: Mapping[str, Any]) -> pb.StreamConfig:
    """Options: segments, scaling (type, rate, factor), retention (type, minimum, maximum), tags, timeout, rollover."""
    kind, rate, factor = options.get("scaling", (FIXED, 0, 0))
    config = pb.StreamConfig(
        streamInfo=info(run, stream, scope),
        scalingPolicy=pb.ScalingPolicy(
            scaleType=kind, targetRate=rate, scaleFactor=factor, minNumSegments=options.get("segments", 1)
        ),
        timestampAggregationTimeout=options.get("timeout", 0),
        rolloverSizeBytes=options.get("rollover", 0),
    )
    if "retention" in options:
        kind, minimum, maximum = options["retention"]
        config.retentionPolicy.CopyFrom(
            pb.RetentionPolicy(retentionType=kind, retentionParam=minimum, retentionMax=maximum)
        )
    if "tags" in options:
        config.tags.CopyFrom(pb.Tags(tag=options["tags"]))
    return config


def create_stream(stream: str = "st", scope: ScopeName = "sc", **options: Any) -> Step:
    return call("createStream", lambda run: configuration(run, stream, scope, options), views.status)


def create_stream_without_policy(stream: str = "st") -> Step:
    return call("createStream", lambda run: pb.StreamConfig(streamInfo=info(run, stream, "sc")), views.status)


def update_stream(stream: str = "st", scope: ScopeName = "sc", **options: Any) -> Step:
    return call("updateStream", lambda run: configuration(run, stream, scope, options), views.status)


def stream_exists(stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("checkStreamExists", lambda run: info(run, stream, scope), views.exists, success=True)


def stream_configuration(stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("getStreamConfiguration", lambda run: info(run, stream, scope), views.configuration)


def seal(stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("sealStream", lambda run: info(run, stream, scope), views.status)


def delete_stream(stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("deleteStream", lambda run: info(run, stream, scope), views.status)


def cut_of(run: Run, cut: Cut, stream: str, scope: ScopeName) -> pb.StreamCut:
    return pb.StreamCut(streamInfo=info(run, stream, scope), cut=dict(cut))


def truncate(cut: Cut, stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("truncateStream", lambda run: cut_of(run, cut, stream, scope), views.status)


def cut_valid(cut: Cut, stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("isStreamCutValid", lambda run: cut_of(run, cut, stream, scope), views.validity, success=True)


# --- segments


def current_segments(stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("getCurrentSegments", lambda run: info(run, stream, scope), views.ranges)


def owners_of_segments(stream: str = "st", scope: ScopeName = "sc") -> Step:
    """What the current segments say they belong to."""
    return call("getCurrentSegments", lambda run: info(run, stream, scope), views.stream_names)


def epoch_segments(epoch: int, stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call(
        "getEpochSegments",
        lambda run: pb.GetEpochSegmentsRequest(streamInfo=info(run, stream, scope), epoch=epoch),
        views.ranges,
    )


def head(stream: str = "st", scope: ScopeName = "sc", timestamp: int = 0) -> Step:
    return call(
        "getSegments",
        lambda run: pb.GetSegmentsRequest(streamInfo=info(run, stream, scope), timestamp=timestamp),
        views.head,
    )


def _segment(run: Run, segment: int, stream: str, scope: ScopeName) -> pb.SegmentId:
    return pb.SegmentId(streamInfo=info(run, stream, scope), segmentId=segment)


def following(segment: int, stream: str = "st", scope: ScopeName = "sc", *, misspelt: bool = False) -> Step:
    rpc = "getSegmentsImmediatlyFollowing" if misspelt else "getSegmentsImmediatelyFollowing"
    return call(rpc, lambda run: _segment(run, segment, stream, scope), views.successors)


def between(start: Cut, end: Cut, stream: str = "st", scope: ScopeName = "sc") -> Step:
    def build(run: Run) -> pb.StreamCutRange:
        request = pb.StreamCutRange(streamInfo=info(run, stream, scope), to=dict(end))
        getattr(request, "from").update(start)
        return request

    return call("getSegmentsBetween", build, views.segment_ids)


def segment_valid(segment: int, stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("isSegmentValid", lambda run: _segment(run, segment, stream, scope), views.validity, success=True)


def uri(segment: int = 0, stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call("getURI", lambda run: _segment(run, segment, stream, scope), views.uri, success=(True, True))


# --- scaling


def scale(
    sealed: Sequence[int],
    ranges: Sequence[tuple[float, float]],
    stream: str = "st",
    scope: ScopeName = "sc",
    timestamp: int = 0,
) -> Step:
    def build(run: Run) -> pb.ScaleRequest:
        entries = [pb.ScaleRequest.KeyRangeEntry(start=low, end=high) for low, high in ranges]
        return pb.ScaleRequest(
            streamInfo=info(run, stream, scope),
            sealedSegments=sealed,
            newKeyRanges=entries,
            scaleTimestamp=timestamp,
        )

    expected = Such("starts", lambda answer: answer[0] == "STARTED" and answer[3] == sorted(ranges))
    return call("scale", build, views.scaled, success=expected)


def refused_scale(status: str) -> tuple[str, int, list[int], list[tuple[float, float]]]:
    """The whole answer to a scale that is not begun."""
    return status, 0, [], []


def check_scale(epoch: int, stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call(
        "checkScale",
        lambda run: pb.ScaleStatusRequest(streamInfo=info(run, stream, scope), epoch=epoch),
        views.status,
    )


# --- the cluster


def token(stream: str = "st", scope: ScopeName = "sc", access: int = 0) -> Step:
    def build(run: Run) -> pb.StreamInfo:
        request = info(run, stream, scope)
        request.accessOperation = access  # type: ignore[assignment]
        return request

    return call("getDelegationToken", build, lambda _run, answer: answer.delegationToken, success="")


# --- what many cases begin with

STREAM: tuple[Step, ...] = (create_scope(), create_stream())
TWO_SEGMENTS: tuple[Step, ...] = (create_scope(), create_stream(segments=2))


def missing(
    ask: Callable[[str, str], Step], answer: object, *, in_missing_scope: object = None, malformed: object = MALFORMED
) -> tuple[Step, ...]:
    """A call on `stream, scope` without a scope, in one that is missing, without a name, and on one that is missing.

    Both that are missing give `answer`, unless the one in a missing scope gives another.
    """
    return (
        ask("st", "").gives(malformed),
        ask("st", "sc").gives(answer if in_missing_scope is None else in_missing_scope),
        create_scope(),
        ask("", "sc").gives(malformed),
        ask("st", "sc").gives(answer),
    )
