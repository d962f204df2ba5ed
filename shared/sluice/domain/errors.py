"""What the domain refuses by exception: arguments no state could make right, and questions about absent things.

Refusals that depend on the state are replies (`replies.Reply`), not exceptions.
"""


class DomainError(Exception):
    """Base of the domain's exceptions."""


class InvalidArgumentError(DomainError):
    """The argument is wrong whatever the state."""


class NotFoundError(DomainError):
    """The scope, stream, segment or epoch does not exist."""


class BusyError(DomainError):
    """A workflow is changing the stream: decide again when it has ended."""


class IllegalStateError(DomainError):
    """The thing exists, but its state does not allow the question."""
