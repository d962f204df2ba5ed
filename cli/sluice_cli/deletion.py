"""The deletion of a scope with everything in it: one request, whose progress is looked at while it runs.

The request is made by a thread of its own; this one reads what is left. A gateway that stops waiting for the end says
so, and the deletion goes on: then the end of its workflow is what to wait for. A look that fails says nothing about the
deletion: only when none succeeds for long does that end the waiting.
"""

import threading
import time
from concurrent.futures import Future, wait
from typing import Any

from sluice.lookback.progress import Advance, Progress
from sluice_cli.api import NOT_NOW, READ_S, Answer, Api, path_of
from sluice_cli.errors import CommandError, NoAnswerError, RefusedError, StoppedError, UnreachableError

LOOK_S = 0.25
BLIND_S = READ_S
"""How long looks may fail one after the other once only they can show the end."""

DECIDED_S = 10.0
"""How long a request that was sent may take to be decided; until then the scope shows no workflow."""

NOT_FOUND = 404


def delete_all(api: Api, scope: str, progress: Progress, look_s: float = LOOK_S) -> Answer:
    """Return when the scope is gone. Raises RefusedError, UnreachableError; StoppedError for Ctrl-C."""
    found = api.get(path_of("scopes", scope))
    pending = _submitted(api, scope)
    try:
        with progress(f"deleting {scope}", _left(found)) as advance:
            return _awaited(pending, _Looks(api, scope, found, advance), look_s)
    except KeyboardInterrupt:
        raise StoppedError(
            f"stopped waiting for the deletion of scope {scope}, which goes on",
            f"look at it with `sluice workflow list --scope {scope}`",
        ) from None


def _submitted(api: Api, scope: str) -> Future[Answer]:
    """The answer to the deletion; the thread that awaits it does not keep the process from ending."""
    pending: Future[Answer] = Future()

    def submit() -> None:
        try:
            pending.set_result(api.change("DELETE", path_of("scopes", scope), recursive=True))
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is awaited
            pending.set_exception(error)

    threading.Thread(target=submit, name="deletion", daemon=True).start()
    return pending


def _awaited(pending: Future[Answer], looks: "_Looks", look_s: float) -> Answer:
    while not wait((pending,), look_s).done:
        looks.look()
    try:
        return pending.result()
    except NoAnswerError as error:
        request = error.request
    looks.until_gone(look_s)
    return Answer(204, {}, request)


class _Looks:
    """Looks at what is left of a scope."""

    def __init__(self, api: Api, scope: str, found: Any, advance: Advance) -> None:
        self._api = api
        self._scope = scope
        self._left = _left(found)
        self._advance = advance

    def look(self) -> CommandError | dict[str, Any] | None:
        """The scope, None if there is none, or why that is unknown now. Raises RefusedError for all else."""
        try:
            found: dict[str, Any] = self._api.get(path_of("scopes", self._scope))
        except UnreachableError as error:
            return error
        except RefusedError as error:
            if error.status in NOT_NOW:
                return error
            if error.status != NOT_FOUND:
                raise
            self._seen(0)
            return None
        self._seen(_left(found))
        return found

    def until_gone(self, look_s: float) -> None:
        """Return when the scope is gone.

        Raises RefusedError if nothing deletes it, and the last failure if no look has succeeded for long.
        """
        pause = threading.Event()
        began = seen_at = time.monotonic()
        while (found := self.look()) is not None:
            if isinstance(found, CommandError):
                if time.monotonic() - seen_at > BLIND_S:
                    raise found
            elif "workflow" not in found and time.monotonic() - began > DECIDED_S:
                raise RefusedError(
                    f"scope {self._scope} is still there, and nothing deletes it now",
                    "delete it again; `sluice topic tail journal` shows what is decided",
                )
            else:
                seen_at = time.monotonic()
            pause.wait(look_s)

    def _seen(self, left: int) -> None:
        self._advance(self._left - left)
        self._left = left


def _left(scope: dict[str, Any]) -> int:
    return sum(int(scope[kind]) for kind in ("streams", "internalStreams", "readerGroups", "tables"))
