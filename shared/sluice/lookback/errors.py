"""Why the past could not be shown: what is wrong, and what to do next."""


class LookbackError(Exception):
    """`hint` says what to do next; it may be empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class NotFoundError(LookbackError):
    """There is no such topic, or there was no such resource at that moment."""


class UnreachableError(LookbackError):
    """Kafka or the archive did not answer."""


class InvalidTextError(LookbackError):
    """A text is no time, or no amount."""


class TimeIsOverError(LookbackError):
    """A job took as long as one may: what it has folded is kept, so the same job comes further the next time."""


class HelperEndedError(LookbackError):
    """The process that reads the past ended while it did a job; the next job starts another one."""


class JobCancelledError(Exception):
    """The caller of a job has left, so nothing waits for its result."""


class JobDefectError(Exception):
    """A job failed with an error that it does not know; the log of its process has it in full."""
