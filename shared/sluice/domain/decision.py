"""What `decide` functions take and give: a view to read, a context with time and ids, a decision to append.

Everything a decision depends on stands in the log: the state it read (guarded by versions) and the context,
which enters with the request. No clock, no randomness here.
"""

from typing import Any, Protocol

import msgspec

from sluice.domain.commands import Command, JoinCreation, ResumeCreation
from sluice.domain.events import Event, Segment


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request: Pravega's status name for the operation, and for people the reason of a refusal.

    A scale that began also says which segments come and the epoch that was active before, an update of a reader group
    its generation, a transaction that was opened its id and the segments to write to.
    """

    status: str
    reason: str = ""
    segments: tuple[Segment, ...] = ()
    epoch: int = 0
    generation: int = 0
    transaction: str = ""


LATE_MS = 10 * 60 * 1000
"""What is older than this, by the broker's clock, was answered long ago or is waited for by nobody."""


class Context(msgspec.Struct, frozen=True):
    """Times in epoch milliseconds; `request` is the id of the request that is being decided, if any.

    `asked_at` is when the broker appended the request, where that matters; `now` is not before that. `heard_at` is when
    it appended the last record of the key's partition. `again` says that the request has come before: it, or one behind
    it, has changed the aggregate already, or was refused.
    """

    now: int
    request: str | None = None
    asked_at: int = 0
    heard_at: int = 0
    again: bool = False

    def is_late(self, asked_at: int) -> bool:
        """Whether a request that was appended then is too old to begin anything; 0 for one that does not say."""
        return asked_at > 0 and self.heard_at - asked_at > LATE_MS


class Decision(msgspec.Struct, frozen=True):
    """Events to append at once, the reply that rides with them, and commands for other keys to send afterwards."""

    events: tuple[Event, ...] = ()
    reply: Reply | None = None
    sends: tuple[Command, ...] = ()


class Reader(Protocol):
    """Reads aggregates of one partition; whatever a decision has read is guarded by its version when appended."""

    def get(self, aggregate: str) -> Any | None:
        """The state of an aggregate, None if it never existed."""
        ...

    def version(self, aggregate: str) -> int:
        """How many records have changed an aggregate; reading this guards nothing."""
        ...

    def index(self, name: str) -> Any | None:
        """What is kept about several aggregates at once; reading it guards nothing."""
        ...


MAX_REASON = 500
"""How many characters of a reason are said: it may name what was asked for, and still has to fit into any record."""


def refusal(status: str, reason: str = "") -> Reply:
    return Reply(status, reason if len(reason) <= MAX_REASON else f"{reason[: MAX_REASON - 1]}…")


def refuse(status: str, reason: str = "") -> Decision:
    return Decision(reply=refusal(status, reason))


def resume(join: JoinCreation, context: Context) -> Decision:
    """What a creation comes to that has waited for another, whose thing is not there."""
    return Decision(sends=(ResumeCreation(join.create, join.again or context.again, join.held, join.asked_at),))
