"""Where epochs go on after a restore: at a base that follows from the minute in which it is made.

A segment's name has its number and the epoch in which it was created. Within a life of the system no stream is given
the same name twice; and the epochs of two lives differ, so names do. Each restored stream gets an epoch with the
number of the base, and what is created later begins with such an epoch. Numbers go on at the base, too, so that a later
restore from the same back-up knows where to look for them.

The number of an epoch has 31 bits. The base is 64 times the minutes since 2026 began: it grows by 64 a minute, and
reaches until 2089. What was numbered before the restore began at an older base, or at 0; and no stream uses up 64
epochs in every minute that goes by. So all that was given out lies below the new base: also what was given out behind
the back-up, by a life of the system of which nothing else is known, and however often the same back-up is restored. A
counter would have to be kept where no back-up takes it back.
"""

from collections.abc import Iterable

_BEGAN_MS = 1_767_225_600_000
"""The first moment of 2026 in UTC, epoch ms."""
_MINUTE_MS = 60_000
EPOCHS_A_MINUTE = 64
_MAX_BASE = 2**31 - 2**24
"""Behind it there is still room for the epochs of a life."""


class BaseUnfitError(Exception):
    """The clock gives no base that lies above all known epochs: it is wrong."""


def check_earlier(earlier: Iterable[int], known: int, base: int) -> None:
    """Raise BaseUnfitError unless restores behind a back-up of base `known` may have had epochs go on at these."""
    for one in earlier:
        if one % EPOCHS_A_MINUTE or not known < one < base:
            raise BaseUnfitError(f"no restore that was made behind this back-up can have numbered from {one}")


def base_at(now_ms: int, highest: int) -> int:
    """The base of a restore at `now_ms`, epoch ms; `highest` is the highest epoch that is known to be given out.

    Raises BaseUnfitError.
    """
    base = (now_ms - _BEGAN_MS) // _MINUTE_MS * EPOCHS_A_MINUTE
    if not highest < base <= _MAX_BASE:
        raise BaseUnfitError(
            f"epochs would go on at {base}, but {highest} is given out: the clock is wrong, "
            "or the restore that this system is from was made within the same minute"
        )
    return base
