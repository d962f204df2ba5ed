"""All commands there are."""

from sluice.domain.cluster import commands as cluster
from sluice.domain.reader_group import commands as reader_group
from sluice.domain.scope import commands as scope
from sluice.domain.stream import commands as stream
from sluice.domain.table import commands as table
from sluice.domain.transaction import commands as transaction
from sluice.domain.workflow import CancelWorkflow, RetryWorkflow

Command = (
    scope.Command
    | stream.Command
    | transaction.Command
    | reader_group.Command
    | table.Command
    | cluster.Command
    | RetryWorkflow
    | CancelWorkflow
)

Create = stream.CreateStream | reader_group.CreateReaderGroup | table.CreateTable
"""The id of the request is the creation id of what comes of it: no two resources of a name have the same."""
