"""How far reading has come: called with the records that were read since the last call."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Advance = Callable[[int], None]
Progress = Callable[[str, int | None], AbstractContextManager[Advance]]
"""Begins a part of the work with a title and a total, None if that is not known."""


@contextmanager
def unseen(_title: str, _total: int | None) -> Iterator[Advance]:
    """For work whose progress nothing shows."""
    yield lambda _steps: None
