"""The streams of the example: made if they are not there, and opened."""

from sluice_client import Client, RevisionedStream, ScalingPolicy, StreamConfig


async def ensure_stream(client: Client, scope: str, stream: str, scaling: ScalingPolicy) -> None:
    """Makes scope and stream if they are not there; a stream that is there stays as it is."""
    await client.streams.create_scope(scope)
    await client.streams.create_stream(scope, stream, StreamConfig(scaling))


async def open_state_stream(client: Client, scope: str, name: str) -> RevisionedStream:
    """The stream of a shared state."""
    await ensure_stream(client, scope, name, ScalingPolicy())
    return await client.revisioned_stream(scope, name)
