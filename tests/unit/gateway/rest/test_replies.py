"""Every status the domain can reply has its place among those of HTTP."""

import pytest
from unit.gateway.test_statuses import DECISIONS, statuses_of

from api_gateway.rest.failures import RefusedError
from api_gateway.rest.sluice_v1.replies import DONE, STATUSES, done
from sluice.domain.decision import Reply
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup, UpdateReaderGroup
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.status import Status
from sluice.domain.stream.commands import (
    CreateStream,
    DeleteStream,
    ScaleStream,
    SealStream,
    TruncateStream,
    UpdateStream,
)
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.transaction.commands import AbortTransaction, CommitTransaction, PingTransaction
from sluice.domain.workflow import CancelWorkflow, RetryWorkflow

ASKED = (
    CreateScope,
    DeleteScope,
    DeleteScopeRecursive,
    CreateStream,
    UpdateStream,
    TruncateStream,
    ScaleStream,
    SealStream,
    DeleteStream,
    CreateReaderGroup,
    UpdateReaderGroup,
    DeleteReaderGroup,
    CreateTable,
    DeleteTable,
    PingTransaction,
    CommitTransaction,
    AbortTransaction,
    RetryWorkflow,
    CancelWorkflow,
)


@pytest.mark.parametrize("command", ASKED, ids=lambda command: command.__name__)
def test_every_reply_has_its_status(command: type) -> None:
    assert command in DECISIONS
    statuses = statuses_of(command)
    assert statuses & DONE, "nothing can succeed"
    assert statuses - DONE - STATUSES.keys() == set()


def test_a_refusal_says_the_reason_or_else_the_status_in_words() -> None:
    with pytest.raises(RefusedError, match="scope sc: 2 streams") as refused:
        done(Reply(Status.SCOPE_NOT_EMPTY, "2 streams"), "scope sc")
    assert (refused.value.status, refused.value.reason) == (409, "SCOPE_NOT_EMPTY")
    with pytest.raises(RefusedError, match="scope sc: scope not found"):
        done(Reply(Status.SCOPE_NOT_FOUND), "scope sc")


def test_a_status_that_is_not_in_the_table_is_a_defect() -> None:
    with pytest.raises(KeyError):
        done(Reply(Status.INVALID_TIME), "scope sc")
