"""What ends a process, and an exception in words: in reasons, readiness, errors of workflows and logs."""

from functools import singledispatch


class CannotStartError(Exception):
    """What a process is given, or finds, does not fit; the text is for the operator and holds nothing secret."""


class EndedError(Exception):
    """A process has lost what it cannot go on without, and has it when it is started again."""


@singledispatch
def in_words(error: BaseException) -> str:
    """What kind of exception it is and what it says, in one line that can be encoded.

    Not `repr`: that is for those who know Python. Not `str`: that may be empty, or a key alone. Kafka's, which say
    neither well, have words of their own where Kafka's clients are configured: not every process has those.
    """
    said = " ".join(str(error).encode(errors="replace").decode().split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
