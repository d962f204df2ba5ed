"""What a store has, beside what the journal says of it. Pure."""

from enum import StrEnum

from sluice.pravega.store import SegmentInfo, TableInfo
from sluice.verification.expected import Expected

Info = SegmentInfo | TableInfo
"""What a store says of a segment."""


class Problem(StrEnum):
    """How a store differs from the journal."""

    MISSING = "missing"
    SEALED = "sealed"
    NOT_SEALED = "not-sealed"
    OTHER_LENGTH = "other-length"
    TOO_SHORT = "too-short"
    STARTS_EARLY = "starts-early"
    STARTS_LATE = "starts-late"
    LEFT_OVER = "left-over"
    OTHER_KEYS = "other-keys"


def problems(expected: Expected, info: Info | None) -> frozenset[Problem]:
    """All differences; `info` None is a segment that does not exist."""
    if expected.exists is None:
        return frozenset()
    if info is None:
        return frozenset((Problem.MISSING,)) if expected.exists else frozenset()
    if not expected.exists:
        return frozenset((Problem.LEFT_OVER,))
    if isinstance(info, TableInfo):
        return frozenset((Problem.OTHER_KEYS,)) if info.key_length != expected.key_length else frozenset()
    return frozenset(problem for problem, holds in _tests(expected, info) if holds)


def _tests(expected: Expected, info: SegmentInfo) -> tuple[tuple[Problem, bool], ...]:
    return (
        (Problem.SEALED, info.sealed and expected.sealed is False),
        (Problem.NOT_SEALED, not info.sealed and expected.sealed is True),
        (Problem.OTHER_LENGTH, expected.length is not None and info.length != expected.length),
        (Problem.TOO_SHORT, expected.length is None and info.length < expected.least_length),
        (Problem.STARTS_EARLY, info.start_offset < expected.start_from),
        (Problem.STARTS_LATE, expected.start_to is not None and info.start_offset > expected.start_to),
    )


def in_journal(expected: Expected) -> str:
    """What the journal says, for people."""
    parts = [expected.says]
    if expected.length is not None:
        parts.append(f"{expected.length} bytes")
    elif expected.least_length:
        parts.append(f"at least {expected.least_length} bytes")
    if expected.start_from:
        parts.append(f"from offset {expected.start_from} on")
    if expected.key_length is not None:
        parts.append(f"keys of {expected.key_length} bytes")
    return ", ".join(parts)


def in_store(info: Info | None) -> str:
    """What a store said, for people."""
    if info is None:
        return "no such segment"
    if isinstance(info, TableInfo):
        return f"a table segment, keys of {info.key_length} bytes"
    return f"{'sealed' if info.sealed else 'not sealed'}, {info.length} bytes, from offset {info.start_offset} on"
