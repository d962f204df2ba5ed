"""Sorted lists of names, each once: what the lists of scopes and of what is in them are kept as.

Plain lists, since most scopes have few names in a partition, and there may be a million in all: one more of 60,000
costs some microseconds. Pure functions.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain

_BEHIND_INTERNAL = chr(ord("_") + 1)
"""It sorts behind every name that begins with an underscore, and no name has it."""


def has(names: list[str], name: str) -> bool:
    at = bisect_left(names, name)
    return at < len(names) and names[at] == name


def add(names: list[str], name: str) -> None:
    at = bisect_left(names, name)
    if at == len(names) or names[at] != name:
        names.insert(at, name)


def discard(names: list[str], name: str) -> None:
    at = bisect_left(names, name)
    if at < len(names) and names[at] == name:
        del names[at]


def behind(names: list[str], name: str, *, internal: bool = True) -> Iterator[str]:
    """The names behind this one, in order; nothing may be folded meanwhile.

    Without `internal` those that begin with an underscore are passed over.
    """
    first, last = bisect_right(names, name), len(names)
    if internal:
        return map(names.__getitem__, range(first, last))
    between = range(first, bisect_left(names, "_"))
    return map(names.__getitem__, chain(between, range(bisect_right(names, max(name, _BEHIND_INTERNAL)), last)))


def count_internal(names: list[str]) -> int:
    """How many of the names begin with an underscore."""
    return bisect_left(names, _BEHIND_INTERNAL) - bisect_left(names, "_")
