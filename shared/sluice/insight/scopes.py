"""A scope as it is shown, of now or of a moment of the past."""

from collections.abc import Sequence

from sluice.domain.ids import ResourceKind
from sluice.domain.listings import Members
from sluice.domain.scope.state import Scope
from sluice.insight.shown import Moment, text
from sluice.insight.workflows import RunningWorkflow, workflow_shown


class ScopeDescription(Moment):
    """A scope, and how much is in it."""

    name: str
    created_at: int = text("When it was created, epoch ms.")
    streams: int = text("How many streams it has, but for internal ones.")
    internal_streams: int = text(
        "How many streams it has whose names begin with an underscore: of watermarks, and of reader groups."
    )
    reader_groups: int
    tables: int
    workflow: RunningWorkflow | None = text("Its deletion, if that is under way.", default=None)


def scope_shown(scope: Scope, members: Sequence[Members]) -> ScopeDescription:
    """`members` are those in all partitions of the journal."""
    counts = {kind: sum(len(one.names(kind)) for one in members) for kind in ResourceKind}
    internal = sum(one.internal_streams for one in members)
    return ScopeDescription(
        name=scope.name,
        created_at=scope.created_at,
        streams=counts[ResourceKind.STREAM] - internal,
        internal_streams=internal,
        reader_groups=counts[ResourceKind.READER_GROUP],
        tables=counts[ResourceKind.TABLE],
        workflow=workflow_shown(scope.workflow),
    )
