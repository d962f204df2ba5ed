"""The workflows: for each kind its steps, in order. Operators see the names of the steps of a running one."""

from sluice.domain.reader_group import decide as group
from sluice.domain.scope_deletion import finish_delete, finish_delete_recursive
from sluice.domain.stream import decide, restore, scale
from sluice.domain.table import decide as table
from sluice.domain.transaction import stream_deletion
from sluice.domain.workflow import WorkflowKind
from sluice.engine.step import Step, Workflows, plain, with_outcome
from stream_workflows import group_steps, restore_steps, scope_steps, stream_steps, table_steps
from stream_workflows.step_context import StreamStepContext

_REPLACE: Step[StreamStepContext] = Step("create-replacement", stream_steps.create_replacement, plain(scale.add_epoch))
_UNSUBSCRIBE: Step[StreamStepContext] = Step("unsubscribe", group_steps.unsubscribe, is_limited=False)
WORKFLOWS: Workflows[StreamStepContext] = {
    WorkflowKind.CREATE_STREAM: (Step("create-segments", stream_steps.create_segments, plain(decide.finish_create)),),
    WorkflowKind.UPDATE_STREAM: (
        Step("update-policies", stream_steps.update_policies),
        _REPLACE,
        Step("seal-replaced", stream_steps.seal_replaced, with_outcome(decide.finish_update)),
    ),
    WorkflowKind.SCALE_STREAM: (
        _REPLACE,
        Step("seal-replaced", stream_steps.seal_replaced, with_outcome(scale.finish_scale)),
    ),
    WorkflowKind.TRUNCATE_STREAM: (
        Step("truncate-segments", stream_steps.truncate_segments),
        Step("delete-passed-segments", stream_steps.delete_passed_segments, plain(decide.finish_truncate)),
    ),
    WorkflowKind.SEAL_STREAM: (
        Step("end-transactions", stream_steps.end_transactions),
        Step("seal-segments", stream_steps.seal_segments, plain(decide.finish_seal)),
    ),
    WorkflowKind.DELETE_STREAM: (
        Step("delete-segments", stream_steps.delete_segments, plain(stream_deletion.finish_delete)),
    ),
    WorkflowKind.RESTORE_STREAM: (
        Step("end-truncation", restore_steps.end_truncation),
        Step(
            "find-out",
            restore_steps.find_out,
            lambda reader, context, _, restored: restore.finish_restore(reader, context, restored),
        ),
    ),
    WorkflowKind.CREATE_GROUP: (
        Step("create-state-stream", group_steps.create_state_stream),
        Step(
            "subscribe",
            group_steps.subscribe,
            lambda reader, context, g, missing: group.finish_create(reader, context, g.id, missing),
            is_limited=False,
        ),
    ),
    WorkflowKind.UPDATE_GROUP: (
        _UNSUBSCRIBE,
        Step("subscribe", group_steps.subscribe, plain(group.finish_update), is_limited=False),
    ),
    WorkflowKind.DELETE_GROUP: (
        _UNSUBSCRIBE,
        Step("delete-state-stream", group_steps.delete_state_stream, plain(group.finish_delete)),
    ),
    WorkflowKind.CREATE_TABLE: (Step("create-segments", table_steps.create_segments, plain(table.finish_create)),),
    WorkflowKind.DELETE_TABLE: (Step("delete-segments", table_steps.delete_segments, plain(table.finish_delete)),),
    WorkflowKind.DELETE_SCOPE: (
        Step(
            "fence",
            scope_steps.fence,
            lambda reader, _context, s, _: finish_delete(reader, s.name),
            is_limited=False,
        ),
    ),
    WorkflowKind.DELETE_SCOPE_RECURSIVE: (
        Step("fence", scope_steps.fence, is_limited=False),
        Step("empty", scope_steps.empty, lambda reader, _context, s, _: finish_delete_recursive(reader, s.name)),
    ),
}
