"""What the domain refuses by exception: arguments no state could make right, and queries about absent resources.

Refusals that depend on the state are replies (`decision.Reply`), not exceptions.
"""

from collections.abc import Mapping, Sequence


class DomainError(Exception):
    """Base of the domain's exceptions."""


class InvalidArgumentError(DomainError):
    """The argument is wrong whatever the state."""


class NotFoundError(DomainError):
    """The scope, stream, segment or epoch does not exist."""


class BusyError(DomainError):
    """A workflow is changing the stream: decide again when it has ended."""


class IllegalStateError(DomainError):
    """The resource exists, but its state does not allow the query."""


class StreamRestoringError(DomainError):
    """The stream is from a back-up, and what happened to it since is being found out: query again soon."""


class ScopeBusyError(BusyError):
    """Whether the scope is deleted is being found out: decide again when it is."""

    def __init__(self, scope: str) -> None:
        super().__init__(f"scope {scope} is being deleted if it is empty")
        self.scope = scope


class ViewBehindError(DomainError):
    """The views of these keys' partitions are not far enough: decide again when they have folded up to `position`.

    Without a position they have to hold all that was acknowledged before the request came (`Context.caught_up`).
    """

    def __init__(self, keys: Sequence[str], position: int | None = None) -> None:
        super().__init__(f"views are behind: those of the partitions of {', '.join(keys)}")
        self.keys = keys
        self.position = position


class LengthsUnknownError(DomainError):
    """The decision rests on the lengths of these segments, ids to names: decide again with `Context.measured`."""

    def __init__(self, segments: Mapping[int, str]) -> None:
        super().__init__(f"lengths are not known: those of {', '.join(segments.values())}")
        self.segments = segments
