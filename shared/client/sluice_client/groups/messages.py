"""Between a group's configuration as its readers keep it and the controller's message for it. Pure functions."""

from collections.abc import Iterable
from uuid import UUID

from sluice.controller_api import controller_pb2 as pb
from sluice.domain.names import is_user_name
from sluice.domain.segment import segment_name
from sluice.pravega.reader_group_config import GroupConfig, Retention
from sluice.pravega.stream_cut import StreamCut
from sluice_client.controller import stream_message
from sluice_client.errors import Refused
from sluice_client.names import check_scope, check_stream


def config_message(scope: str, group: str, config: GroupConfig) -> pb.ReaderGroupConfiguration:
    """The message for a configuration."""
    return pb.ReaderGroupConfiguration(
        scope=scope,
        readerGroupName=group,
        groupRefreshTimeMillis=config.refresh_ms,
        automaticCheckpointIntervalMillis=config.automatic_checkpoint_ms,
        maxOutstandingCheckpointRequest=config.max_outstanding,
        retentionType=config.retention,
        generation=config.generation,
        readerGroupId=str(config.id),
        startingStreamCuts=[_cut_message(stream, cut) for stream, cut in config.starts.items()],
        endingStreamCuts=[_cut_message(stream, cut) for stream, cut in config.ends.items()],
    )


def config_of(message: pb.ReaderGroupConfiguration) -> GroupConfig:
    """The configuration in a message."""
    return GroupConfig(
        starts=_cuts_of(message.startingStreamCuts),
        ends=_cuts_of(message.endingStreamCuts),
        automatic_checkpoint_ms=message.automaticCheckpointIntervalMillis,
        refresh_ms=message.groupRefreshTimeMillis,
        max_outstanding=message.maxOutstandingCheckpointRequest,
        retention=Retention(message.retentionType),
        generation=message.generation,
        id=UUID(message.readerGroupId),
    )


def cut_message(cut: StreamCut) -> pb.StreamCut:
    """The message for a cut."""
    return pb.StreamCut(streamInfo=stream_message(cut.scope, cut.stream), cut=cut.by_id())


def _cut_message(name: str, cut: StreamCut | None) -> pb.StreamCut:
    scope, _, stream = name.partition("/")
    return cut_message(cut or StreamCut(scope, stream, {}))


def _cuts_of(messages: Iterable[pb.StreamCut]) -> dict[str, StreamCut | None]:
    found: dict[str, StreamCut | None] = {}
    for message in messages:
        scope, stream = message.streamInfo.scope, message.streamInfo.stream
        offsets = {segment_name(scope, stream, id): offset for id, offset in message.cut.items()}
        found[f"{scope}/{stream}"] = StreamCut(scope, stream, offsets) if offsets else None
    return found


def check_group(scope: str, group: str) -> None:
    """Raises Refused if no group can have this name in a scope of that name."""
    check_scope(scope)
    if not is_user_name(group):
        raise Refused(f"reader group {scope}/{group!r}: INVALID_RG_NAME")


def check_config(config: GroupConfig) -> None:
    """Raises Refused for what the controller would refuse, without saying why (controller-grpc-api 5.8)."""
    if not config.starts or config.max_outstanding < 1:
        raise Refused("a reader group needs a stream, and one outstanding checkpoint at least")
    if not config.ends.keys() <= config.starts.keys():
        raise Refused(f"ends of streams that are not read: {sorted(config.ends.keys() - config.starts.keys())}")
    for name, start in config.starts.items():
        scope, _, stream = name.partition("/")
        check_stream(scope, stream)
        end = config.ends.get(name)
        for cut in (start, end):
            if cut is not None and (f"{cut.scope}/{cut.stream}" != name or not cut.offsets):
                raise Refused(f"not a cut of {name}: {cut}")
        if start is not None and end is not None and not _is_in_order(start.by_id(), end.by_id()):
            raise Refused(f"{name} would end before it starts: {start} {end}")


def _is_in_order(start: dict[int, int], end: dict[int, int]) -> bool:
    common = ((start[id], end[id]) for id in start.keys() & end.keys())
    offsets = all(last == -1 or (first != -1 and first <= last) for first, last in common)
    return offsets and min(start) <= min(end) and max(start) <= max(end)
