"""The commands of a reader group that subscribes to streams."""

from sluice.domain.commands import Command
from sluice.domain.config import GroupRetention, ReaderGroupConfig
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.reader_group.commands import CreateReaderGroup
from sluice.domain.stream.commands import AddSubscriber


def subscribing(group: str, *streams: tuple[str, str]) -> list[Command]:
    """Creates the group `scope/name`, whose id is "id", and has the streams keep what it has yet to read."""
    ids = [StreamId(*stream) for stream in streams]
    config = ReaderGroupConfig("id", {f"{id}": {} for id in ids}, retention=GroupRetention.MANUAL)
    return [CreateReaderGroup(*GroupId.of(group), config), *(AddSubscriber(*id, group, "id", 0) for id in ids)]
