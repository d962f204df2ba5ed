"""The deletion of a scope with everything in it: one request, whose progress is looked at while it runs.

The request is made by a thread of its own; this one asks what is left. A gateway that stops waiting for the end says
so, and the deletion goes on: then the end of its workflow is what to wait for.
"""

import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from sluice_cli.api import Answer, Api, path_of
from sluice_cli.errors import RefusedError
from sluice_cli.output import Advance, Progress

LOOK_S = 0.25
NOT_FOUND = 404
NO_ANSWER_IN_TIME = 504


def delete_all(api: Api, scope: str, progress: Progress, look_s: float = LOOK_S) -> Answer:
    """Return when the scope is gone. Raises RefusedError, UnreachableError."""
    found = api.get(path_of("scopes", scope))
    with ThreadPoolExecutor(1) as threads, progress(f"deleting {scope}", _left(found)) as advance:
        asking: Future[Answer] = threads.submit(api.change, "DELETE", path_of("scopes", scope), recursive=True)
        before = _left(found)
        while not wait((asking,), look_s).done:
            before = _advanced(_find(api, scope), before, advance)
        try:
            return asking.result()
        except RefusedError as error:
            if error.status != NO_ANSWER_IN_TIME:
                raise
            _wait_for_the_end(api, scope, before, advance, look_s)
            return Answer(204, None, error.request)


def _wait_for_the_end(api: Api, scope: str, before: int, advance: Advance, look_s: float) -> None:
    pause = threading.Event()
    while (found := _find(api, scope)) is not None:
        if "workflow" not in found:
            raise RefusedError(
                f"scope {scope} is still there, and nothing deletes it any more",
                "delete it again; `sluice topic tail journal` shows what is decided",
            )
        before = _advanced(found, before, advance)
        pause.wait(look_s)


def _find(api: Api, scope: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = api.get(path_of("scopes", scope))
    except RefusedError as error:
        if error.status == NOT_FOUND:
            return None
        raise
    return found


def _left(scope: dict[str, Any] | None) -> int:
    return sum(int(scope[kind]) for kind in ("streams", "readerGroups", "tables")) if scope is not None else 0


def _advanced(scope: dict[str, Any] | None, before: int, advance: Advance) -> int:
    left = _left(scope)
    advance(before - left)
    return left
