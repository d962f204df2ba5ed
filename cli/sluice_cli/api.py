"""The REST interface as commands use it: one call, one answer, errors as people can read them.

Blocking, one connection; belongs to the thread that made it.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx

from sluice_cli.errors import RefusedError, UnreachableError

CONNECT_S = 3.0
READ_S = 60.0
PAGE = 1000

_HINTS = {
    "SCOPE_NOT_FOUND": "`sluice scope list` shows the scopes there are",
    "SCOPE_NOT_EMPTY": "delete what is in it, or everything at once with --recursive",
    "STREAM_NOT_FOUND": "`sluice stream list SCOPE` shows the streams there are",
    "STREAM_NOT_SEALED": "seal it first: `sluice stream seal SCOPE/STREAM`",
    "TABLE_EXISTS": "a table never changes its configuration; delete it first, with its data, or take another name",
    "PRECONDITION_FAILED": "`sluice stream show SCOPE/STREAM` shows its segments and the fewest its policy allows",
    "NOT_RUNNING": "`sluice workflow list` shows what is under way",
    "RG_NOT_FOUND": "`sluice reader-group list SCOPE` shows the reader groups there are",
    "TABLE_NOT_FOUND": "`sluice table list SCOPE` shows the tables there are",
    "UNKNOWN": "`sluice transaction list SCOPE/STREAM` shows the transactions there are",
}
_HINTS_BY_STATUS = {
    429: "more is being asked than Sluice may hold; try again in a moment",
    503: "Sluice runs but something it needs does not; `sluice member list` and /readyz of the api-gateway say more",
    504: "the operation goes on; look at it with `sluice workflow list` or `sluice trace`",
}


class Answer(NamedTuple):
    """What a change was answered with; `request` is its id, for `sluice trace`."""

    status: int
    body: Any
    request: str


def path_of(*parts: str | int) -> str:
    """A path under /sluice/v1, with every part quoted."""
    return "/sluice/v1/" + "/".join(quote(str(part), safe="") for part in parts)


class Api:
    """One api-gateway. Every method raises RefusedError or UnreachableError."""

    def __init__(
        self,
        base: str,
        *,
        transport: httpx.BaseTransport | None = None,
        connect_s: float = CONNECT_S,
        read_s: float = READ_S,
    ) -> None:
        self.base = base
        try:
            timeout = httpx.Timeout(read_s, connect=connect_s)
            # Authorities are loaded for https alone: that takes as long as all the rest of a command.
            self._client = httpx.Client(
                base_url=base, timeout=timeout, transport=transport, trust_env=False, verify=base.startswith("https:")
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise UnreachableError(f"{base!r} is no address: {error}", "give --api or SLUICE_API as a URL") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def get(self, path: str, **parameters: object) -> Any:
        """The body of the answer; parameters that are None are left out."""
        return self._call("GET", path, None, parameters).body

    def change(self, method: str, path: str, body: Any = None, **parameters: object) -> Answer:
        return self._call(method, path, body, parameters)

    def pages(self, path: str, limit: int | None = None, **parameters: object) -> Iterator[Any]:
        """The items of a list, page by page, at most `limit` of them."""
        after: str | None = None
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = self.get(path, limit=size, after=after, **parameters)
            items = page["items"]
            yield from items
            after = page.get("next")
            if after is None:
                return
            left = None if left is None else left - len(items)

    def _call(self, method: str, path: str, body: Any, parameters: dict[str, object]) -> Answer:
        sent = {name: _text(value) for name, value in parameters.items() if value is not None}
        try:
            response = self._client.request(method, path, params=sent, json=body)
        except httpx.TimeoutException as error:
            raise UnreachableError(
                f"{self.base} did not answer in time ({type(error).__name__})",
                "what was asked may go on all the same; `sluice workflow list` shows what is under way",
            ) from error
        except (httpx.TransportError, httpx.UnsupportedProtocol) as error:
            raise UnreachableError(
                f"cannot reach the API at {self.base}: {error}",
                "is Sluice running (`make status`)? Another address: --api URL or SLUICE_API",
            ) from error
        request = response.headers.get("Sluice-Request", "")
        if response.is_success:
            return Answer(response.status_code, response.json() if response.content else None, request)
        raise _refusal(response, request)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(response: httpx.Response, request: str) -> RefusedError:
    status = response.status_code
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or not {"title", "status"} <= problem.keys():
        return RefusedError(
            f"{response.request.url} answered {status} and not as Sluice does",
            "is --api (SLUICE_API) the address of an api-gateway?",
            status=status,
        )
    reason = str(problem.get("reason") or "")
    detail = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
    message = f"{reason}: {detail}" if reason and reason not in detail else detail
    hint = _HINTS.get(reason) or _HINTS_BY_STATUS.get(status, "")
    if request:
        hint = f"{hint + '; ' if hint else ''}what happened to it: `sluice trace {request}`"
    return RefusedError(message, hint, status=status, request=request)
