"""The reader group aggregate: its configuration, and the streams that must keep what it has yet to read.

A group's state lives in its stream `_RG<group>`, which is created and deleted with it. Groups with a retention type
are subscribers of their streams; those have keys of their own, so subscribing travels as requests.
Rules: controller-grpc-api 5.8, background-and-other-workflows 6.
"""

from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

from sluice.domain import events as ev
from sluice.domain.commands import (
    CreateReaderGroup,
    DeleteReaderGroup,
    UpdateReaderGroup,
)
from sluice.domain.config import ReaderGroupConfig, ScalingPolicy, StreamConfig
from sluice.domain.decision import Context, Decision, Reader, Reply, refuse
from sluice.domain.errors import BusyError
from sluice.domain.fences import missing_scope
from sluice.domain.names import group_aggregate, group_stream, is_user_name
from sluice.domain.status import Status
from sluice.domain.stream import decide as streams
from sluice.domain.workflow import Workflow, WorkflowKind, can_cancel, last_reply

ZERO_ID = "00000000-0000-0000-0000-000000000000"
_STATE_STREAM_CONFIG = StreamConfig(scaling=ScalingPolicy(min_segments=1), rollover_size_bytes=4 * 1024 * 1024)


class GroupState(Enum):
    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    DELETING = "DELETING"


class GroupWorkflow(Workflow):
    """`leaves` are the streams ("scope/stream") that have yet to forget the group."""

    leaves: tuple[str, ...] = ()


class ReaderGroup(msgspec.Struct):
    scope: str
    name: str
    creation_id: str
    state: GroupState
    config: ReaderGroupConfig
    created_at: int
    workflow: GroupWorkflow | None = None

    @property
    def subscriber(self) -> str:
        """The name under which the group subscribes to streams."""
        return f"{self.scope}/{self.name}"


def find_group(reader: Reader, scope: str, name: str) -> ReaderGroup | None:
    state = reader.get(group_aggregate(scope, name))
    return state if isinstance(state, ReaderGroup) else None


def _idle_group(reader: Reader, scope: str, name: str, creation_id: str = "") -> ReaderGroup | None:
    """The group to begin a workflow on; with a creation id only that life of it. Raises BusyError."""
    group = find_group(reader, scope, name)
    if group is None or creation_id not in ("", group.creation_id):
        return None
    if group.workflow is not None:
        raise BusyError(f"{scope}/{name}: {group.workflow.kind.value} is running")
    return group


def _running(reader: Reader, scope: str, name: str, kind: WorkflowKind) -> ReaderGroup | None:
    group = find_group(reader, scope, name)
    return group if group and group.workflow and group.workflow.kind is kind else None


def decide_create(reader: Reader, command: CreateReaderGroup, context: Context) -> Decision:
    """Begin the creation of the group, its state stream and that one's mark stream. One that exists is the answer.

    Raises ViewBehindError, BusyError.
    """
    if not is_user_name(command.group):
        return refuse(Status.INVALID_RG_NAME)
    group = _idle_group(reader, command.scope, command.group)
    if refused := missing_scope(reader, command.scope, context):
        return refused
    if group is not None:
        return Decision(reply=Reply(Status.SUCCESS))
    started = ev.ReaderGroupCreationStarted(
        scope=command.scope,
        group=command.group,
        creation_id=context.request or "",
        config=command.config,
        created_at=context.now,
        request=context.request,
        at=context.now,
    )
    stream = group_stream(command.group)
    begun = streams.start_with_mark(reader, command.scope, stream, _STATE_STREAM_CONFIG, context, None)
    return Decision((started, *begun))


def finish_create(reader: Reader, context: Context, scope: str, name: str, missing: list[str]) -> Decision:
    """Done, or undone again if a stream to subscribe to does not exist: then the deletion goes on from here."""
    group = _running(reader, scope, name, WorkflowKind.CREATE_GROUP)
    if group is None or (group.workflow and group.workflow.cancelled):
        return Decision()
    created = streams.finish_with_mark(reader, scope, group_stream(name))
    if missing:
        return Decision((*created, _undo(group, context, f"no such stream: {', '.join(sorted(missing))}")))
    done = ev.ReaderGroupCreated(scope=scope, group=name)
    return Decision((*created, done), last_reply(group.workflow))


def _undo(group: ReaderGroup, context: Context, refusal: str) -> ev.ReaderGroupDeletionStarted:
    request = group.workflow.request if group.workflow else None
    return ev.ReaderGroupDeletionStarted(
        scope=group.scope, group=group.name, request=request, at=context.now, refusal=refusal
    )


def cancel(reader: Reader, context: Context, state: Any) -> Decision | None:
    """End a cancelled creation by deleting what there is; None if not of a reader group."""
    group = find_group(reader, state.scope, state.name) if isinstance(state, ReaderGroup) else None
    return Decision((_undo(group, context, "cancelled"),)) if group is not None and can_cancel(group) else None


def decide_update(reader: Reader, command: UpdateReaderGroup, context: Context) -> Decision:
    """Replace the configuration, if generation and id are the stored ones; without subscriptions in one record."""
    group = _idle_group(reader, command.scope, command.group)
    wanted = command.config
    if group is None:
        return Decision(reply=Reply(Status.RG_NOT_FOUND, generation=wanted.generation))
    present = group.config
    if present.generation != wanted.generation or present.id != wanted.id:
        reason = f"the group is at generation {present.generation} with id {present.id}"
        return Decision(reply=Reply(Status.INVALID_CONFIG, reason, generation=wanted.generation))
    config = msgspec.structs.replace(wanted, generation=present.generation + 1)
    if not present.subscribes() and not config.subscribes():
        done = ev.ReaderGroupUpdated(scope=group.scope, group=group.name, config=config)
        return Decision((done,), Reply(Status.SUCCESS, generation=config.generation))
    kept = config.starts.keys() if config.subscribes() else set()
    leaves = tuple(sorted(present.starts.keys() - kept)) if present.subscribes() else ()
    started = ev.ReaderGroupUpdateStarted(
        scope=group.scope, group=group.name, config=config, leaves=leaves, request=context.request, at=context.now
    )
    return Decision((started,))


def finish_update(reader: Reader, scope: str, name: str) -> Decision:
    group = _running(reader, scope, name, WorkflowKind.UPDATE_GROUP)
    if group is None:
        return Decision()
    done = ev.ReaderGroupUpdated(scope=scope, group=name)
    return Decision((done,), last_reply(group.workflow, group.config.generation))


def decide_delete(reader: Reader, command: DeleteReaderGroup, context: Context) -> Decision:
    group = _idle_group(reader, command.scope, command.group, command.creation_id)
    if group is None or command.id not in (None, group.config.id):
        return refuse(Status.RG_NOT_FOUND)
    started = ev.ReaderGroupDeletionStarted(
        scope=group.scope, group=group.name, request=context.request, at=context.now
    )
    return Decision((started,))


def finish_delete(reader: Reader, scope: str, name: str) -> Decision:
    group = _running(reader, scope, name, WorkflowKind.DELETE_GROUP)
    if group is None:
        return Decision()
    gone = streams.delete_with_mark(reader, scope, group_stream(name))
    return Decision((ev.ReaderGroupDeleted(scope=scope, group=name), *gone), last_reply(group.workflow))


def _creation_started(_state: Any, event: ev.ReaderGroupCreationStarted) -> ReaderGroup:
    return ReaderGroup(
        scope=event.scope,
        name=event.group,
        creation_id=event.creation_id,
        state=GroupState.CREATING,
        config=event.config,
        created_at=event.created_at,
        workflow=GroupWorkflow(WorkflowKind.CREATE_GROUP, event.request, event.at),
    )


def _created(state: ReaderGroup, _event: ev.ReaderGroupCreated) -> ReaderGroup:
    state.state, state.workflow = GroupState.ACTIVE, None
    return state


def _update_started(state: ReaderGroup, event: ev.ReaderGroupUpdateStarted) -> ReaderGroup:
    state.config = event.config
    state.workflow = GroupWorkflow(WorkflowKind.UPDATE_GROUP, event.request, event.at, leaves=event.leaves)
    return state


def _updated(state: ReaderGroup, event: ev.ReaderGroupUpdated) -> ReaderGroup:
    state.config = event.config or state.config
    state.workflow = None
    return state


def _deletion_started(state: ReaderGroup, event: ev.ReaderGroupDeletionStarted) -> ReaderGroup:
    leaves = tuple(sorted(state.config.starts)) if state.config.subscribes() else ()
    state.state = GroupState.DELETING
    state.workflow = GroupWorkflow(
        WorkflowKind.DELETE_GROUP, event.request, event.at, refusal=event.refusal, leaves=leaves
    )
    return state


def _deleted(_state: ReaderGroup, _event: ev.ReaderGroupDeleted) -> None:
    return None


DECIDE: dict[type, Callable[[Reader, Any, Context], Decision]] = {
    CreateReaderGroup: decide_create,
    UpdateReaderGroup: decide_update,
    DeleteReaderGroup: decide_delete,
}

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.ReaderGroupCreationStarted: _creation_started,
    ev.ReaderGroupCreated: _created,
    ev.ReaderGroupUpdateStarted: _update_started,
    ev.ReaderGroupUpdated: _updated,
    ev.ReaderGroupDeletionStarted: _deletion_started,
    ev.ReaderGroupDeleted: _deleted,
}
