"""The reader groups of the example: that of the workers, and one for each run of a sink."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from secrets import token_hex

from at_least_once.settings import AppSettings
from sluice_client import (
    Client,
    ConfigDiffers,
    EventReader,
    GroupConfig,
    ReaderGroup,
    Retention,
    create_reader_group,
    delete_reader_group,
    open_reader,
    open_reader_group,
)


class OtherInput(Exception):
    """The group reads another stream."""


async def make_group(client: Client, settings: AppSettings) -> ReaderGroup:
    """The group of the workers; one that is there stays as it is. Retention keeps what it has not read.

    Raises OtherInput.
    """
    stream = f"{settings.scope}/{settings.input}"
    config = GroupConfig(
        starts={stream: None},
        automatic_checkpoint_ms=int(settings.checkpoint_s * 1000),
        refresh_ms=int(settings.refresh_s * 1000),
        retention=Retention.AUTOMATIC,
    )
    with suppress(ConfigDiffers):
        await create_reader_group(client, settings.scope, settings.group, config)
    group = await open_reader_group(client, settings.scope, settings.group)
    reads = ", ".join(group.shared.state.config.starts)
    if reads != stream:
        raise OtherInput(f"group {settings.group} reads {reads}: for another input, another group")
    return group


@asynccontextmanager
async def whole_stream(client: Client, scope: str, stream: str) -> AsyncIterator[EventReader]:
    """A reader of a whole stream from its head, alone in a group that is deleted at the end."""
    group = f"sink-{token_hex(8)}"
    config = GroupConfig(starts={f"{scope}/{stream}": None}, automatic_checkpoint_ms=1000, refresh_ms=500)
    await create_reader_group(client, scope, group, config)
    try:
        async with await open_reader(client, scope, group, "sink") as reader:
            yield reader
    finally:
        await delete_reader_group(client, scope, group)
