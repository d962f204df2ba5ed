"""Between Pravega's messages on reader groups and the domain's values.

A configuration is checked as a whole before the group's name and its scope are looked at: what breaks a rule raises
BadRequestError (controller-grpc-api 5.8). Pure functions.
"""

import re
from collections.abc import Iterable, Mapping

from api_gateway.edge.errors import BadRequestError
from api_gateway.pravega.convert import stream_of
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import GroupRetention, ReaderGroupConfig, check_group_config
from sluice.domain.errors import InvalidArgumentError
from sluice.domain.ids import GroupId, StreamId

_RETENTIONS = {0: GroupRetention.NONE, 1: GroupRetention.MANUAL, 2: GroupRetention.AUTOMATIC}
_RETENTION_NUMBERS = {retention: number for number, retention in _RETENTIONS.items()}

_ID_LENGTHS = (8, 4, 4, 4, 12)
_ID = re.compile("-".join(f"([0-9a-f]{{1,{length}}})" for length in _ID_LENGTHS))


def id_of(text: str) -> str:
    """A UUID in its one form. Clients may leave out leading zeros. Raises InvalidArgumentError."""
    found = _ID.fullmatch(text.lower())
    if found is None:
        raise InvalidArgumentError(f"{text[:50]!r} is no UUID")
    return "-".join(part.zfill(length) for part, length in zip(found.groups(), _ID_LENGTHS, strict=True))


def group_config_of(message: pb.ReaderGroupConfiguration) -> ReaderGroupConfig:
    """As sent. Raises BadRequestError."""
    retention = _RETENTIONS.get(message.retentionType)
    if retention is None:
        raise BadRequestError(f"{message.retentionType} is no retentionType")
    try:
        config = ReaderGroupConfig(
            id=id_of(message.readerGroupId),
            starts=_cuts_of(message.startingStreamCuts),
            ends=_cuts_of(message.endingStreamCuts),
            retention=retention,
            refresh_ms=message.groupRefreshTimeMillis,
            checkpoint_interval_ms=message.automaticCheckpointIntervalMillis,
            max_outstanding_checkpoints=message.maxOutstandingCheckpointRequest,
            generation=message.generation,
        )
        check_group_config(config)
    except InvalidArgumentError as error:
        raise BadRequestError(str(error)) from error
    return config


def _cuts_of(messages: Iterable[pb.StreamCut]) -> dict[str, dict[int, int]]:
    """Cuts by "scope/stream", an empty one for none."""
    cuts: dict[str, dict[int, int]] = {}
    for message in messages:
        stream = str(stream_of(message.streamInfo))
        if cuts.setdefault(stream, cut := dict(message.cut)) is not cut:
            raise BadRequestError(f"{stream} is there twice")
    return cuts


def group_config_message(id: GroupId, config: ReaderGroupConfig) -> pb.ReaderGroupConfiguration:
    """With the streams that were sent, in their order, those without a cut too: clients compare."""
    return pb.ReaderGroupConfiguration(
        scope=id.scope,
        readerGroupName=id.name,
        groupRefreshTimeMillis=config.refresh_ms,
        automaticCheckpointIntervalMillis=config.checkpoint_interval_ms,
        maxOutstandingCheckpointRequest=config.max_outstanding_checkpoints,
        retentionType=_RETENTION_NUMBERS[config.retention],
        generation=config.generation,
        readerGroupId=config.id,
        startingStreamCuts=_cut_messages(config.starts),
        endingStreamCuts=_cut_messages(config.ends),
    )


def _cut_messages(cuts: Mapping[str, dict[int, int]]) -> Iterable[pb.StreamCut]:
    for name, cut in cuts.items():
        stream = StreamId.of(name)
        yield pb.StreamCut(streamInfo=pb.StreamInfo(scope=stream.scope, stream=stream.name), cut=cut)
