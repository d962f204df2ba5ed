"""What can go wrong when a system is set up or started, each as one exception.

They exist so that the command line can print a sentence instead of a traceback: the text of each is complete, names the
thing at fault and says what to do. Plain values, safe in any thread.
"""


class LocalError(Exception):
    """A failure whose text is meant for the person at the keyboard."""


class MissingPrerequisite(LocalError):
    """A program this machine lacks, or has in too old a version."""


class UnusableState(LocalError):
    """The state folder cannot be written, or its disk is full."""


class PortTaken(LocalError):
    """One or more ports of the system are in use by another process."""


class PartFailed(LocalError):
    """A part ended, or was not ready in time."""


class NotReadyInTime(PartFailed):
    """A part runs, but was not ready in time."""


class AlreadyUp(LocalError):
    """Another supervisor runs on the same state folder."""


class NotUp(LocalError):
    """The command needs a running system and there is none."""
