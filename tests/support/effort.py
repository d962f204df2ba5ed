"""How much a long test does: all of it by hand, a stated part where changes are judged, which has a time limit."""

import os
from typing import TypeVar

T = TypeVar("T")

JUDGED = bool(os.environ.get("CI"))


def effort(whole: T, judged: T) -> T:
    """The whole, or what is done of it where changes are judged (`CI` is set)."""
    return judged if JUDGED else whole
