"""How much a long test does: all of it by hand, a stated part where changes are judged, which has a time limit."""

import os
from typing import TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

JUDGED = bool(os.environ.get("CI"))


def effort(whole: T, judged: T) -> T:
    """The whole, or what is done of it where changes are judged (`CI` is set)."""
    return judged if JUDGED else whole


def by_hand(why: str) -> pytest.MarkDecorator:
    """Of tests that `make test` runs, and that are skipped where changes are judged; the summary shows how many."""
    return pytest.mark.skipif(JUDGED, reason=f"not in .ci/run: {why}")


def load_profile() -> None:
    """Have hypothesis take the same examples each time where changes are judged, and new ones by hand.

    How long an example takes says more about the machine than about the code.
    """
    settings.register_profile("judged", derandomize=True, deadline=None)
    settings.register_profile("by hand", deadline=None)
    settings.load_profile("judged" if JUDGED else "by hand")
