"""Calls into Spark from the event loop: they block, some for long, and none may keep the process from ending.

Each runs in a daemon thread of its own, because the loop's own threads are waited for at the end.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from sluice.exceptions import EndedError, in_words

log = logging.getLogger(__name__)

T = TypeVar("T")


def in_daemon(call: Callable[..., T], *arguments: Any) -> "asyncio.Future[T]":
    """A future of the running loop with what the call returns or raises; cancelling it leaves the call alone."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(call(*arguments))
        except BaseException as error:  # noqa: BLE001 - raised where the future is awaited
            future.set_exception(error)

    threading.Thread(target=run, name=getattr(call, "__name__", "call"), daemon=True).start()
    return asyncio.wrap_future(future)


async def within(seconds: float, what: str, call: Callable[..., T], *arguments: Any) -> T:
    """What the call returns or raises. Raises EndedError if it takes longer: it is left to the end of the process."""
    made = in_daemon(call, *arguments)
    done, _ = await asyncio.wait([made], timeout=seconds)
    if not done:
        raise EndedError(f"{what}: not done within {seconds:g} s")
    return made.result()


async def at_most(seconds: float, what: str, *calls: Callable[[], None]) -> None:
    """Make the calls side by side; what takes longer is left to the end of the process, which nothing is lost by."""
    made = [in_daemon(call) for call in calls]
    for future in made:
        future.add_done_callback(partial(_log_failure, what))
    _, late = await asyncio.wait(made, timeout=seconds)
    if late:
        log.warning("not ended in time", extra={"what": what, "seconds": seconds})


def _log_failure(what: str, future: "asyncio.Future[None]") -> None:
    error = None if future.cancelled() else future.exception()
    if error is not None:
        log.warning("ended with an error", extra={"what": what, "error": in_words(error)})
