"""What the workflows of reader groups do: the state stream's segments, and the streams that the group subscribes to.

Rules: background-and-other-workflows 6.
"""

from sluice.domain import group as groups
from sluice.domain.commands import AddSubscriber, RemoveSubscriber
from sluice.domain.decision import Reader
from sluice.domain.group import ReaderGroup
from sluice.domain.names import group_stream, stream_key
from sluice.domain.stream.state import Stream, find_stream
from sluice.workflows.steps import all_done
from stream_workflows import stream_steps
from stream_workflows.tools import StreamTools


def _state_stream(tools: StreamTools, group: ReaderGroup) -> Stream | None:
    name = group_stream(group.name)
    return find_stream(tools.reader(stream_key(group.scope, name)), group.scope, name)


async def create_state_stream(tools: StreamTools, group: ReaderGroup) -> None:
    stream = _state_stream(tools, group)
    if stream is not None and stream.incarnation == group.incarnation:
        await stream_steps.create_segments(tools, stream)


async def subscribe(tools: StreamTools, group: ReaderGroup) -> list[str]:
    """Subscribe to every stream of the group; the names of those that do not exist."""
    config, subscriber = group.config, group.subscriber
    if not config.subscribes():
        return []
    missing = []

    async def subscribe_to(scoped: str) -> None:
        scope, _, name = scoped.partition("/")
        command = AddSubscriber(scope, name, subscriber, config.id, config.generation)

        def known(reader: Reader) -> bool:
            stream = find_stream(reader, scope, name)
            if stream is None:
                return True
            entry = stream.subscribers.get(subscriber)
            return entry is not None and entry.group_id == config.id and entry.generation >= config.generation

        await tools.catch_up(command.key)
        await tools.ask_until(command, known)
        if find_stream(tools.reader(command.key), scope, name) is None:
            missing.append(scoped)

    await all_done(subscribe_to(scoped) for scoped in config.starts)
    return missing


async def unsubscribe(tools: StreamTools, group: ReaderGroup) -> None:
    """Have the streams that the group leaves forget it; one that is gone has forgotten already."""
    subscriber, generation = group.subscriber, group.config.generation

    async def leave(scoped: str) -> None:
        scope, _, name = scoped.partition("/")
        command = RemoveSubscriber(scope, name, subscriber, generation)

        def forgotten(reader: Reader) -> bool:
            stream = find_stream(reader, scope, name)
            return stream is None or subscriber not in stream.subscribers

        await tools.ask_until(command, forgotten)

    await all_done(leave(scoped) for scoped in (group.workflow.leaves if group.workflow else ()))


async def delete_state_stream(tools: StreamTools, group: ReaderGroup) -> None:
    stream = _state_stream(tools, group)
    if stream is not None:
        await stream_steps.delete_segments(tools, stream)


async def release_name(tools: StreamTools, group: ReaderGroup) -> None:
    await tools.release(groups.release(group))
    stream = _state_stream(tools, group)
    if stream is not None and stream.incarnation != group.incarnation:
        await stream_steps.release_name(tools, stream)
