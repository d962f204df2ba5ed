"""The decisions on a reader group, and which streams have it as a subscriber."""

from typing import Any

import msgspec

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.decision import Context, Decide, Decision, Reader, Reply, nothing_to_delete, refuse
from sluice.domain.errors import ViewBehindError
from sluice.domain.ids import GroupId
from sluice.domain.names import is_user_name
from sluice.domain.reader_group import events as ev
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup, UpdateReaderGroup
from sluice.domain.reader_group.state import ReaderGroup, find_group
from sluice.domain.scope.fences import missing_scope
from sluice.domain.status import Status
from sluice.domain.stream import decide as streams
from sluice.domain.stream.commands import AddSubscriber
from sluice.domain.stream.events import SubscriberAdded
from sluice.domain.stream.state import find_created
from sluice.domain.workflow import idle, last_reply, undone_creation

_STATE_STREAM_CONFIG = StreamConfig(scaling=ScalingPolicy(min_segments=1), rollover_size_bytes=4 * 1024 * 1024)


def _idle_group(reader: Reader, id: GroupId, creation_id: str = "") -> ReaderGroup | None:
    """The group to begin a workflow on; with a creation id only that creation of it. Raises BusyError."""
    return idle(id, find_group(reader, id), creation_id)


def decide_create(reader: Reader, command: CreateReaderGroup, context: Context) -> Decision:
    """Begin the creation of the group, its state stream and that one's mark stream. One that exists is the answer.

    Raises ViewBehindError, BusyError.
    """
    if not is_user_name(command.group):
        return refuse(Status.INVALID_RG_NAME)
    group = _idle_group(reader, command.group_id)
    if refused := missing_scope(reader, command.scope, context):
        return refused
    if group is not None:
        return Decision(reply=Reply(Status.SUCCESS))
    started = ev.ReaderGroupCreationStarted(
        *command.group_id,
        creation_id=context.request or "",
        config=command.config,
        created_at=context.now,
        request=context.request,
        at=context.now,
    )
    state_stream = command.group_id.state_stream
    begun = streams.start_with_mark(reader, state_stream, _STATE_STREAM_CONFIG, context, None)
    return Decision((started, *begun))


def finish_create(reader: Reader, context: Context, id: GroupId, missing: list[str]) -> Decision:
    """Done, or undone again if a stream to subscribe to does not exist: then the deletion goes on from here."""
    group = find_group(reader, id)
    if group is None:
        return Decision()
    created = streams.finish_with_mark(reader, id.state_stream)
    if missing:
        return Decision((*created, _undo(group, context, f"no such stream: {', '.join(sorted(missing))}")))
    done = ev.ReaderGroupCreated(*id)
    return Decision((*created, done), last_reply(group))


def _undo(group: ReaderGroup, context: Context, refusal: str) -> ev.ReaderGroupDeletionStarted:
    request = group.workflow.request if group.workflow else None
    return ev.ReaderGroupDeletionStarted(*group.id, request=request, at=context.now, refusal=refusal)


def cancel(_reader: Reader, context: Context, state: Any) -> Decision | None:
    """End a cancelled creation by deleting what there is; None if not of a reader group."""
    return Decision((_undo(state, context, "cancelled"),)) if isinstance(state, ReaderGroup) else None


def decide_update(reader: Reader, command: UpdateReaderGroup, context: Context) -> Decision:
    """Replace the configuration, if generation and id are the stored ones; without subscriptions in one record."""
    group = _idle_group(reader, command.group_id)
    wanted = command.config
    if group is None:
        return Decision(reply=Reply(Status.RG_NOT_FOUND, generation=wanted.generation))
    present = group.config
    if present.generation != wanted.generation or present.id != wanted.id:
        reason = f"the group is at generation {present.generation} with id {present.id}"
        return Decision(reply=Reply(Status.INVALID_CONFIG, reason, generation=wanted.generation))
    config = msgspec.structs.replace(wanted, generation=present.generation + 1)
    if not present.subscribes() and not config.subscribes():
        done = ev.ReaderGroupUpdated(*group.id, config=config)
        return Decision((done,), Reply(Status.SUCCESS, generation=config.generation))
    kept = config.starts.keys() if config.subscribes() else set()
    leaves = tuple(sorted(present.starts.keys() - kept)) if present.subscribes() else ()
    started = ev.ReaderGroupUpdateStarted(
        *group.id, config=config, leaves=leaves, request=context.request, at=context.now
    )
    return Decision((started,))


def finish_update(reader: Reader, id: GroupId) -> Decision:
    group = find_group(reader, id)
    if group is None:
        return Decision()
    done = ev.ReaderGroupUpdated(*id)
    return Decision((done,), last_reply(group, group.config.generation))


def decide_delete(reader: Reader, command: DeleteReaderGroup, context: Context) -> Decision:
    group = _idle_group(reader, command.group_id, command.creation_id)
    if group is None:
        return nothing_to_delete(command.creation_id, refuse(Status.RG_NOT_FOUND))
    if command.id not in (None, group.config.id):
        return refuse(Status.RG_NOT_FOUND)
    started = ev.ReaderGroupDeletionStarted(*group.id, request=context.request, at=context.now)
    return Decision((started,))


def finish_delete(reader: Reader, id: GroupId) -> Decision:
    group = reader.get(id.aggregate)
    deleted = streams.delete_with_mark(reader, id.state_stream, undone_creation(group))
    return Decision((ev.ReaderGroupDeleted(*id), *deleted), last_reply(group))


def decide_add_subscriber(reader: Reader, command: AddSubscriber, context: Context) -> Decision:
    """Nothing to record if the group is known with this generation or a later one, or is not as it was when it asked.

    A request may come when its group is gone, and another one has the name. Raises ViewBehindError.
    """
    stream = find_created(reader, command.stream_id, command.creation_id)
    known = stream.subscribers.get(command.subscriber) if stream else None
    if stream is None or (known and known.group_id == command.group_id and known.generation >= command.generation):
        return Decision()
    id = GroupId.of(command.subscriber)
    if not context.caught_up:
        raise ViewBehindError((id.key,))
    group = find_group(reader.elsewhere(id.key), id)
    if group is None or not group.subscribes_to(stream.id, command.group_id, command.generation):
        return Decision()
    added = SubscriberAdded(
        *command.stream_id,
        subscriber=command.subscriber,
        group_id=command.group_id,
        generation=command.generation,
        at=context.now,
    )
    return Decision((added,))


DECIDE: dict[type, Decide] = {
    CreateReaderGroup: decide_create,
    UpdateReaderGroup: decide_update,
    DeleteReaderGroup: decide_delete,
    AddSubscriber: decide_add_subscriber,
}
