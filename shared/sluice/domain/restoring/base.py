"""Where numbers go on after a restore: at a base that follows from the minute in which it is made.

An epoch and a segment's number have 31 bits each. The base is 64 times the minutes since 2026 began: it grows by 64 a
minute, and reaches until 2089. What was numbered before the restore began at an older base, or at 0; and no stream uses
up 64 epochs and 64 numbers in every minute that goes by. So all that was given out lies below the new base: also what
was given out behind the back-up, by a life of the system of which nothing else is known, and however often the same
back-up is restored. A counter would have to be kept where no back-up takes it back.

What is created takes as many numbers at once as it has segments. So behind a restore that is known to have come since
the back-up there must be room for those of one creation.
"""

from collections.abc import Sequence

from sluice.domain.config import MAX_SEGMENTS

_BEGAN_MS = 1_767_225_600_000
"""The first moment of 2026 in UTC, epoch ms."""
_MINUTE_MS = 60_000
NUMBERS_A_MINUTE = 64
_MAX_BASE = 2**31 - 2**24
"""Behind it there is still room for the numbers of a life."""


class BaseUnfitError(Exception):
    """The clock gives no base that lies above all known numbers: it is wrong."""


def check_earlier(earlier: Sequence[int], known: int, now_ms: int) -> None:
    """Raise BaseUnfitError unless restores may have numbered from these, and this one keeps clear of all of them.

    `known` is the base of the back-up itself.
    """
    for base in earlier:
        if base % NUMBERS_A_MINUTE or not known < base < base_at(now_ms, known):
            raise BaseUnfitError(f"no restore that was made behind this back-up can have numbered from {base}")
    if not earlier:
        return
    free = max(earlier) + MAX_SEGMENTS
    missing = free - base_at(now_ms, known)
    if missing > 0:
        raise BaseUnfitError(
            f"what was created behind the restore from {max(earlier)} on may have numbers up to {free}: "
            f"restore in {-(-missing // NUMBERS_A_MINUTE)} minutes"
        )


def base_at(now_ms: int, highest: int) -> int:
    """The base of a restore at `now_ms`, epoch ms; `highest` is the highest number that is known to be given out.

    Raises BaseUnfitError.
    """
    base = (now_ms - _BEGAN_MS) // _MINUTE_MS * NUMBERS_A_MINUTE
    if not highest < base <= _MAX_BASE:
        raise BaseUnfitError(
            f"numbers would go on at {base}, but {highest} is given out: the clock is wrong, "
            "or the restore that this system is from was made within the same minute"
        )
    return base
