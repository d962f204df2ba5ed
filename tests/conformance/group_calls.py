"""Calls on reader groups, subscribers and writers. Defaults as in `calls`; `rg` is the reader group."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from conformance import views
from conformance.calls import Cut, cut_of, info
from conformance.case import Step, call
from conformance.run import Run, ScopeName
from sluice.controller_api import controller_pb2 as pb

ID, OTHER_ID = "0f0e0d0c-0b0a-4908-8706-050403020100", "00000000-0000-4000-8000-000000000001"
ZERO_ID = "00000000-0000-0000-0000-000000000000"

NONE, MANUAL, AUTOMATIC = 0, 1, 2

Cuts = Mapping[str, Cut]
AT_HEAD: Cuts = {"st": {}}


def _group(run: Run, group: str, scope: ScopeName, options: Mapping[str, Any]) -> pb.ReaderGroupConfiguration:
    """Options: start and end (cuts by stream), id, generation, retention, refresh, checkpoint, outstanding.

    `start` may also be a list of streams, each at its head, so that one can be named twice.
    """
    start = options.get("start", AT_HEAD)
    starting = [(one, {}) for one in start] if isinstance(start, list) else start.items()
    return pb.ReaderGroupConfiguration(
        scope=run.scope(scope),
        readerGroupName=group,
        groupRefreshTimeMillis=options.get("refresh", 3000),
        automaticCheckpointIntervalMillis=options.get("checkpoint", 30_000),
        maxOutstandingCheckpointRequest=options.get("outstanding", 3),
        retentionType=options.get("retention", NONE),
        generation=options.get("generation", 0),
        readerGroupId=options.get("id", ID),
        startingStreamCuts=_cuts(run, starting, scope),
        endingStreamCuts=_cuts(run, options.get("end", AT_HEAD).items(), scope),
    )


def _cuts(run: Run, cuts: Iterable[tuple[str, Cut]], scope: ScopeName) -> list[pb.StreamCut]:
    return [cut_of(run, cut, stream, scope) for stream, cut in cuts]


def create_group(group: str = "rg", scope: ScopeName = "sc", **options: Any) -> Step:
    return call("createReaderGroup", lambda run: _group(run, group, scope, options), views.status)


def created_group(group: str = "rg", scope: ScopeName = "sc", **options: Any) -> Step:
    """The same, with the configuration that is answered."""
    return call("createReaderGroup", lambda run: _group(run, group, scope, options), views.group)


def configuration_of(**options: Any) -> dict[str, Any]:
    """The configuration expected of `sc/rg`, made with these options."""
    start, end = options.get("start", AT_HEAD), options.get("end", AT_HEAD)
    return {
        "group": "sc/rg",
        "refresh": options.get("refresh", 3000),
        "checkpoint": options.get("checkpoint", 30_000),
        "outstanding": options.get("outstanding", 3),
        "retention": options.get("retention", NONE),
        "generation": options.get("generation", 0),
        "id": options.get("id", ID),
        "start": {f"sc/{stream}": dict(cut) for stream, cut in start.items()},
        "end": {f"sc/{stream}": dict(cut) for stream, cut in end.items()},
    }


def group_configuration(group: str = "rg", scope: ScopeName = "sc") -> Step:
    return call(
        "getReaderGroupConfig",
        lambda run: pb.ReaderGroupInfo(scope=run.scope(scope), readerGroup=group),
        views.group,
    )


def update_group(group: str = "rg", scope: ScopeName = "sc", **options: Any) -> Step:
    """Gives status and generation."""
    return call("updateReaderGroup", lambda run: _group(run, group, scope, options), views.updated_group)


def answered_id(run: Run) -> str:
    """The id in the latest answer to createReaderGroup."""
    answer: pb.CreateReaderGroupResponse = run.answers["createReaderGroup"]
    return answer.config.readerGroupId


def delete_group(
    group: str = "rg", scope: ScopeName = "sc", *, id: str | Callable[[Run], str] = ID, generation: int = 0
) -> Step:
    def build(run: Run) -> pb.ReaderGroupInfo:
        return pb.ReaderGroupInfo(
            scope=run.scope(scope),
            readerGroup=group,
            readerGroupId=id if isinstance(id, str) else id(run),
            generation=generation,
        )

    return call("deleteReaderGroup", build, views.status)


# --- subscribers


def subscribers(stream: str = "st", scope: ScopeName = "sc") -> Step:
    """Gives status and names."""
    return call("listSubscribers", lambda run: info(run, stream, scope), views.subscribers)


def publish(
    cut: Cut,
    stream: str = "st",
    scope: ScopeName = "sc",
    *,
    subscriber: str | None = None,
    generation: int = 0,
    id: str = ID,
) -> Step:
    """updateSubscriberStreamCut, as the subscriber `sc/rg` unless the text of another is given."""

    def build(run: Run) -> pb.SubscriberStreamCut:
        return pb.SubscriberStreamCut(
            subscriber=f"{run.scope('sc')}/rg" if subscriber is None else subscriber,
            generation=generation,
            readerGroupId=id,
            streamCut=cut_of(run, cut, stream, scope),
        )

    return call("updateSubscriberStreamCut", build, views.status)


# --- writers


def note_time(time: int, position: Cut, writer: str = "w", stream: str = "st", scope: ScopeName = "sc") -> Step:
    def build(run: Run) -> pb.TimestampFromWriter:
        return pb.TimestampFromWriter(writer=writer, timestamp=time, position=cut_of(run, position, stream, scope))

    return call("noteTimestampFromWriter", build, views.status)


def remove_writer(writer: str = "w", stream: str = "st", scope: ScopeName = "sc") -> Step:
    return call(
        "removeWriter",
        lambda run: pb.RemoveWriterRequest(writer=writer, stream=info(run, stream, scope)),
        views.status,
    )
