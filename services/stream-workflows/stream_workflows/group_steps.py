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
from sluice.workflows.waiting import Need
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
    config = group.config
    if not config.subscribes():
        return []
    streams = {scoped: _stream_name(scoped) for scoped in config.starts}
    unseen = {stream_key(*stream) for stream in streams.values() if _find(tools, stream) is None}
    if unseen:
        await tools.catch_up(unseen)
    tools.need(_subscription(stream, group) for stream in streams.values())
    return [scoped for scoped, stream in streams.items() if _find(tools, stream) is None]


def _stream_name(scoped: str) -> tuple[str, str]:
    scope, _, name = scoped.partition("/")
    return scope, name


def _find(tools: StreamTools, stream: tuple[str, str]) -> Stream | None:
    return find_stream(tools.reader(stream_key(*stream)), *stream)


def _subscription(stream: tuple[str, str], group: ReaderGroup) -> Need:
    """A stream knows the group in its present form; or there is no such stream."""
    subscriber, config = group.subscriber, group.config

    def known(reader: Reader) -> bool:
        found = find_stream(reader, *stream)
        if found is None:
            return True
        entry = found.subscribers.get(subscriber)
        return entry is not None and entry.group_id == config.id and entry.generation >= config.generation

    command = AddSubscriber(*stream, subscriber, config.id, config.generation)
    return Need(f"stream {'/'.join(stream)} has not yet added the subscriber", command.key, known, command)


async def unsubscribe(tools: StreamTools, group: ReaderGroup) -> None:
    """Have the streams that the group leaves forget it; one that is gone has forgotten already.

    A creation that is undone may have asked streams that were too busy to hear it. All are told behind that, once,
    and not waited for.
    """
    workflow, subscriber, config = group.workflow, group.subscriber, group.config
    streams = [_stream_name(scoped) for scoped in (workflow.leaves if workflow else ())]
    leavings = {stream: RemoveSubscriber(*stream, subscriber, config.generation, config.id) for stream in streams}
    needs = [_absence(stream, subscriber, command) for stream, command in leavings.items()]
    await tools.need_gone(needs)
    if workflow is not None and workflow.refusal:
        told = (tools.tell(f"{group.incarnation}-undone-{'/'.join(s)}", leaving) for s, leaving in leavings.items())
        await all_done(told)


def _absence(stream: tuple[str, str], subscriber: str, command: RemoveSubscriber) -> Need:
    def forgotten(reader: Reader) -> bool:
        found = find_stream(reader, *stream)
        known = found.subscribers.get(subscriber) if found is not None else None
        return known is None or known.group_id != command.group_id

    return Need(f"stream {'/'.join(stream)} has not yet removed the subscriber", command.key, forgotten, command)


async def delete_state_stream(tools: StreamTools, group: ReaderGroup) -> None:
    stream = _state_stream(tools, group)
    if stream is not None:
        await stream_steps.delete_segments(tools, stream)


async def release_name(tools: StreamTools, group: ReaderGroup) -> None:
    await tools.release((groups.release(group),))
    stream = _state_stream(tools, group)
    if stream is not None and stream.incarnation != group.incarnation:
        await stream_steps.release_name(tools, stream)
