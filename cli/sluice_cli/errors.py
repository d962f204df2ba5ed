"""What ends a command early: what happened, what to do next, and the exit code that scripts see."""


class CommandError(Exception):
    """`hint` says what to do next; it may be empty."""

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class RefusedError(CommandError):
    """Sluice refused the request.

    `status` is that of HTTP, 0 without one; `reason` Pravega's name of it, if it has one; `request` the id of the
    request that was refused, if it was one.
    """

    def __init__(self, message: str, hint: str = "", *, status: int = 0, reason: str = "", request: str = "") -> None:
        super().__init__(message, hint)
        self.status = status
        self.reason = reason
        self.request = request


class UsageError(CommandError):
    """The command line makes no sense."""

    exit_code = 2


class UnreachableError(CommandError):
    """The API or Kafka did not answer."""

    exit_code = 3


class NoAnswerError(UnreachableError):
    """No answer came; the requested operation may go on all the same. `request` is its id, if that is known."""

    def __init__(self, message: str, hint: str = "", *, request: str = "") -> None:
        super().__init__(message, hint)
        self.request = request


class DeclinedError(CommandError):
    """The user said no; nothing was done."""


class StoppedError(CommandError):
    """Ctrl-C ended the waiting for something that goes on."""

    exit_code = 130


def as_command_error(error: Exception) -> CommandError | None:
    """What ends the command for an error of the command line itself, or of reading the past; None for any other one."""
    if isinstance(error, CommandError):
        return error
    # Not at the start of the process, which must come at once.
    from sluice.lookback import errors as lookback

    kinds = {lookback.InvalidTextError: UsageError, lookback.UnreachableError: UnreachableError}
    if not isinstance(error, lookback.LookbackError):
        return None
    return kinds.get(type(error), CommandError)(str(error), error.hint)
