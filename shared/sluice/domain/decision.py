"""What decisions of this domain give: replies, and refusals; beside what all decisions take and give."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from sluice.domain.segment import Segment
from sluice.domain.status import Status
from sluice.engine.decision import Context, Decision, Reader, View

__all__ = [
    "MAX_REASON",
    "Context",
    "Decide",
    "Decision",
    "ProjectionReader",
    "Reader",
    "Reply",
    "View",
    "nothing_to_delete",
    "refusal",
    "refuse",
]


class Reply(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The answer to a request: Pravega's status name for the operation, and for people the reason of a refusal.

    A scale that began also says which segments come and the epoch that was active before, an update of a reader group
    its generation, a transaction that was opened its id and the segments to write to.
    """

    status: Status
    reason: str = ""
    segments: tuple[Segment, ...] = ()
    epoch: int = 0
    generation: int = 0
    transaction: str = ""


Decide = Callable[[Reader, Any, Context], Decision]
"""What a command of one type comes to, on what is read; it is pure."""


class ProjectionReader(Protocol):
    """Whatever shows the projections of a partition."""

    def projection(self, name: str) -> Any | None: ...


MAX_REASON = 500
"""How many characters of a reason are stored: it may quote the request, and still has to fit into any record."""


def refusal(status: Status, reason: str = "") -> Reply:
    return Reply(status, reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 1]}…")


def refuse(status: Status, reason: str = "") -> Decision:
    return Decision(reply=refusal(status, reason))


def nothing_to_delete(creation_id: str, refused: Decision) -> Decision:
    """A deletion that finds nothing: success if it names a creation, for that one is gone; else it is refused.

    So one that is repeated while the first one runs is answered as that one is (controller-grpc-api 7.2).
    """
    return Decision(reply=Reply(Status.SUCCESS)) if creation_id else refused
