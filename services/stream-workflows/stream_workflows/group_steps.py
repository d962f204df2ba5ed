"""What the workflows of reader groups do: the state stream's segments, and the streams that the group subscribes to.

Rules: background-and-other-workflows 6.
"""

from sluice.domain.decision import Reader
from sluice.domain.ids import StreamId
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.stream.commands import AddSubscriber, RemoveSubscriber
from sluice.domain.stream.state import Stream, find_created, find_stream
from sluice.domain.workflow import undone_creation
from sluice.engine.dependencies import Dependency
from sluice.engine.step import all_done
from stream_workflows import stream_steps
from stream_workflows.step_context import StreamStepContext


async def create_state_stream(context: StreamStepContext, group: ReaderGroup) -> None:
    stream = _created(context, group, group.creation_id)
    if stream is not None:
        await stream_steps.create_segments(context, stream)


def _created(context: StreamStepContext, group: ReaderGroup, creation_id: str) -> Stream | None:
    """The state stream if it is of that creation, else its mark stream if that is."""
    reader, id = context.reader(group.id.key), group.id.state_stream
    return find_created(reader, id, creation_id) or find_created(reader, id.mark, creation_id)


async def subscribe(context: StreamStepContext, group: ReaderGroup) -> list[str]:
    """Subscribe to every stream of the group; the names of those that do not exist."""
    config = group.config
    if not config.subscribes():
        return []
    streams = {scoped: StreamId.of(scoped) for scoped in config.starts}
    unseen = {stream.key for stream in streams.values() if _find(context, stream) is None}
    if unseen:
        await context.catch_up(unseen)
    context.require(_subscription(stream, group, _creation_id(context, stream)) for stream in streams.values())
    return [scoped for scoped, stream in streams.items() if _find(context, stream) is None]


def _find(context: StreamStepContext, stream: StreamId) -> Stream | None:
    return find_stream(context.reader(stream.key), stream)


def _creation_id(context: StreamStepContext, stream: StreamId) -> str:
    """The creation id of the stream that the view shows; "" if it shows none."""
    found = _find(context, stream)
    return found.creation_id if found is not None else ""


def _subscription(stream: StreamId, group: ReaderGroup, creation_id: str) -> Dependency:
    """A stream knows the group in its present form; or there is no such stream."""
    subscriber, config = group.subscriber, group.config

    def known(reader: Reader) -> bool:
        found = find_stream(reader, stream)
        if found is None:
            return True
        entry = found.subscribers.get(subscriber)
        return entry is not None and entry.group_id == config.id and entry.generation >= config.generation

    command = AddSubscriber(*stream, subscriber, config.id, config.generation, creation_id)
    return Dependency(f"stream {stream} has not yet added the subscriber", command.key, known, command)


async def unsubscribe(context: StreamStepContext, group: ReaderGroup) -> None:
    """Have the streams that the group leaves forget it; one that is gone has forgotten already.

    A creation that is undone may have sent AddSubscriber to streams that were too busy to handle it. RemoveSubscriber
    goes behind that to all of them, once, and is not waited for.
    """
    workflow, subscriber, config = group.workflow, group.subscriber, group.config
    streams = [StreamId.of(scoped) for scoped in (workflow.leaves if workflow else ())]
    # A stream that does not show the group may be one that the view does not show yet.
    unseen = {stream.key for stream in streams if not _has_subscriber(_find(context, stream), group)}
    if unseen:
        await context.catch_up(unseen)
    leavings = {
        stream: RemoveSubscriber(*stream, subscriber, config.generation, config.id, _creation_id(context, stream))
        for stream in streams
    }
    context.require([_absence(stream, group, command) for stream, command in leavings.items()])
    if workflow is not None and workflow.refusal:
        sent = (context.send(f"{group.creation_id}-undone-{s}", leaving) for s, leaving in leavings.items())
        await all_done(sent)


def _has_subscriber(stream: Stream | None, group: ReaderGroup) -> bool:
    known = stream.subscribers.get(group.subscriber) if stream is not None else None
    return known is not None and known.group_id == group.config.id


def _absence(stream: StreamId, group: ReaderGroup, command: RemoveSubscriber) -> Dependency:
    def forgotten(reader: Reader) -> bool:
        return not _has_subscriber(find_stream(reader, stream), group)

    return Dependency(f"stream {stream} has not yet removed the subscriber", command.key, forgotten, command)


async def delete_state_stream(context: StreamStepContext, group: ReaderGroup) -> None:
    """And its mark stream; of either, if a creation is undone, only what that has created."""
    creation_id = undone_creation(group)
    stream = _created(context, group, creation_id)
    if stream is not None:
        await stream_steps.delete_segments(context, stream, creation_id)
