"""Answers, and what is expected of them. Frozen values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Refused:
    """A gRPC error. The description counts only where one is expected."""

    code: str
    text: str | None = None

    def agrees(self, other: object) -> bool:
        return isinstance(other, Refused) and self.code == other.code and self.text in (None, other.text)


@dataclass(frozen=True, slots=True)
class Explained(Refused):
    """A gRPC error whose description has all these words, whatever else."""

    words: tuple[str, ...] = ()

    def agrees(self, other: object) -> bool:
        description = other.text or "" if isinstance(other, Refused) else ""
        return Refused(self.code).agrees(other) and all(word in description for word in self.words)


MALFORMED = Refused("INTERNAL", "Internal exception occurred")
"""For what cannot be made into a request at all (controller-grpc-api 3.2)."""
NOT_FOUND, UNKNOWN, INTERNAL = Refused("NOT_FOUND"), Refused("UNKNOWN"), Refused("INTERNAL")
INVALID = Refused("INVALID_ARGUMENT")
WHY_INVALID = (
    "clients try again on UNKNOWN, for 95 s, and not on INVALID_ARGUMENT: what is wrong with a request stays so"
)


@dataclass(frozen=True, slots=True)
class Such:
    """Any answer of which something holds."""

    that: str
    holds: Callable[[Any], bool]


def agrees(expected: object, actual: object) -> bool:
    """Whether an answer is the one expected."""
    if isinstance(expected, Such):
        return not isinstance(actual, Refused) and expected.holds(actual)
    return expected.agrees(actual) if isinstance(expected, Refused) else expected == actual


def text_of(expected: object) -> str:
    """An expected answer, for people."""
    return f"an answer that {expected.that}" if isinstance(expected, Such) else repr(expected)
