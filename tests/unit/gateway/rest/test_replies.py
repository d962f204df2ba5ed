"""Every status the domain can reply has its place among those of HTTP."""

import pytest
from unit.gateway.test_statuses import DECISIONS, statuses_of

from api_gateway.console.rest.replies import STATUSES, done
from api_gateway.edge.rest.failures import RefusedError
from api_gateway.pravega.statuses import RESPONSES
from sluice.domain.decision import Reply
from sluice.domain.status import DONE, Status
from sluice.domain.stream.commands import NoteWriterTime, RemoveWriter, UpdateSubscriberCut
from sluice.domain.workflow import CancelWorkflow, RetryWorkflow

NOT_IN_REST = {UpdateSubscriberCut, NoteWriterTime, RemoveWriter}
SENT = (RESPONSES.keys() - NOT_IN_REST) | {RetryWorkflow, CancelWorkflow}


@pytest.mark.parametrize("command", sorted(SENT, key=str), ids=lambda command: command.__name__)
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
