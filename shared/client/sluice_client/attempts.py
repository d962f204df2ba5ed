"""One call may need several attempts: the module where the client retries requests to a segment store.

Each attempt says by its error whether another makes sense (`sluice.pravega.errors`). No state; any number of calls
side by side.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar, cast

import msgspec

from sluice.pravega import (
    LengthDiffers,
    Permanent,
    SegmentMissing,
    SegmentSealed,
    SegmentStoreError,
    SegmentTruncated,
    TryLater,
)
from sluice.pravega.wire.refusals import SegmentIsTruncated
from sluice_client import errors

R = TypeVar("R")


PASSING = (TryLater, errors.Unavailable, errors.Contended)
"""What goes away by itself."""

_log = logging.getLogger(__name__)


class Patience(msgspec.Struct, frozen=True):
    """How long a call goes on trying, in seconds; the pauses between its attempts double and vary by chance."""

    deadline_s: float = 60.0
    first_pause_s: float = 0.02
    longest_pause_s: float = 1.0

    def pauses(self) -> Iterator[float]:
        """Seconds to wait before the second attempt, the third and so on, for ever: up to twice the mean."""
        mean = self.first_pause_s
        while True:
            yield random.uniform(0.0, 2 * mean)
            mean = min(2 * mean, self.longest_pause_s)


async def answered(attempt: Callable[[], Awaitable[R]], patience: Patience, left_s: float | None = None) -> R:
    """The result of the first attempt that a segment store answers.

    Raises Unavailable after the deadline, which is `left_s` from now if some of the time has passed already. A refusal
    comes as the client's own error; but LengthDiffers, which is an answer for callers that append on condition, is
    passed on.
    """
    last: SegmentStoreError | None = None
    try:
        async with asyncio.timeout(patience.deadline_s if left_s is None else left_s):
            for pause in patience.pauses():
                try:
                    return await attempt()
                except TryLater as error:
                    last = error
                await asyncio.sleep(pause)
    except TimeoutError as error:
        waited = f"{patience.deadline_s} s"
        raise errors.Unavailable(f"{waited}; last answer: {last}" if last else waited) from error
    except SegmentMissing as error:
        raise errors.StreamMissing(error.segment) from error
    except SegmentSealed as error:
        raise errors.StreamSealed(error.segment) from error
    except SegmentTruncated as error:
        raise errors.RevisionTruncated(error.segment, cast(SegmentIsTruncated, error.reply).start_offset) from error
    except LengthDiffers:
        raise
    except Permanent as error:
        raise errors.Refused(str(error)) from error
    raise AssertionError("the pauses never end")


async def patiently(
    call: Callable[[], Awaitable[R]], patience_s: float, passing: tuple[type[Exception], ...] = PASSING
) -> R:
    """The result of a call, which is made again after a passing failure until `patience_s` are over; then it raises.

    For what is harmless to do twice: reads, and appends under the same number.
    """
    clock = asyncio.get_running_loop().time
    end = clock() + patience_s
    for pause in Patience().pauses():
        try:
            return await call()
        except passing as error:
            if clock() >= end:
                raise
            _log.info("once more after %s", error)
        await asyncio.sleep(pause)
    raise AssertionError("the pauses never end")
