"""All events there are."""

from sluice.domain.cluster import events as cluster
from sluice.domain.reader_group import events as reader_group
from sluice.domain.restoring import events as restoring
from sluice.domain.scope import events as scope
from sluice.domain.stream import events as stream
from sluice.domain.table import events as table
from sluice.domain.transaction import events as transaction
from sluice.domain.workflow import WorkflowCancelled, WorkflowRetryRequested, WorkflowStepFailed

Event = (
    scope.Event
    | stream.Event
    | transaction.Event
    | reader_group.Event
    | table.Event
    | cluster.Event
    | restoring.Event
    | WorkflowStepFailed
    | WorkflowRetryRequested
    | WorkflowCancelled
)
