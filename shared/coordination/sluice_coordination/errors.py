"""What can go wrong between processes that meet in documents. The docstring of an exception is its message."""


class CoordinationError(Exception):
    """Coordination through documents failed."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(f"{type(self).__doc__} [{detail}]" if detail else type(self).__doc__)
        self.detail = detail


class ConflictError(CoordinationError):
    """The document is not at the version that the write expects."""


class StoreUnavailableError(CoordinationError):
    """The document store gave no answer in time; a write may have been done."""


class StoreFailedError(CoordinationError):
    """The document store refused the request, or what it holds is damaged; a retry does not help."""


class StoreHeldError(CoordinationError):
    """The file is in use by another process."""


class LockLostError(CoordinationError):
    """The lock is no longer held: it could not be renewed in time, or another process has changed its document."""


class UnknownFunctionError(CoordinationError):
    """No function of this name is registered."""


class TaskFailedError(CoordinationError):
    """The function of the task raised an error."""


class TaskTimedOutError(CoordinationError):
    """The task was not done in the time that was given for it."""


class TaskCancelledError(CoordinationError):
    """The task was cancelled before it was done."""


class TaskVanishedError(CoordinationError):
    """The task's document is gone, and how the task ended was not seen."""


class TaskBoardFullError(CoordinationError):
    """The board holds as many tasks as it may."""
