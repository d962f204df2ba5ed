"""The REST interface as commands use it: one call, one answer, errors as operators can read them.

Blocking. What is answered is what Sluice answers or an error that says so, for any server may stand at the address.
"""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Self
from urllib.parse import quote

import httpx

from sluice.domain.status import Status
from sluice.security.credentials import CA_VARIABLE, Credentials
from sluice.security.hiding import shown
from sluice_cli.errors import NoAnswerError, RefusedError, UnreachableError, UsageError

CONNECT_S = 3.0
READ_S = 130.0
"""Longer than a gateway waits (`request_timeout_s`): it is the one who knows what becomes of a request."""

PATIENCE_S = 5.0
"""After how long the command reports that it still waits for an answer."""

PAGE = 1000

NO_ANSWER_IN_TIME = 504
NOT_NOW = frozenset({429, 503})
"""Statuses that say nothing of what was requested before: ask again."""

_HINTS: dict[str, str] = {
    Status.SCOPE_NOT_FOUND: "`sluice scope list` shows the scopes there are",
    Status.SCOPE_NOT_EMPTY: "delete what is in it, or everything at once with --recursive",
    Status.STREAM_NOT_FOUND: "`sluice stream list SCOPE` shows the streams there are",
    Status.STREAM_NOT_SEALED: "seal it first: `sluice stream seal SCOPE/STREAM`",
    Status.TABLE_EXISTS: "a table never changes its configuration; delete it with its data first, or take another name",
    Status.PRECONDITION_FAILED: "`sluice stream show SCOPE/STREAM` shows its segments and the fewest its policy allows",
    Status.CONFIG_CHANGED: "another caller has just changed it: nothing was done, run the command once more",
    Status.NOT_RUNNING: "`sluice workflow list` shows what is under way",
    Status.RG_NOT_FOUND: "`sluice reader-group list SCOPE` shows the reader groups there are",
    Status.TABLE_NOT_FOUND: "`sluice table list SCOPE` shows the tables there are",
    Status.UNKNOWN: "`sluice transaction list SCOPE/STREAM` shows the transactions there are",
}
_HINTS_BY_STATUS = {
    401: "say who you are: SLUICE_USER and SLUICE_PASSWORD_FILE",
    403: "`sluice security may FILE USER RESOURCE` says which entry of the ACL decides",
    503: "Sluice runs but something it needs does not; `sluice member list` and /readyz of the api-gateway say more",
    NO_ANSWER_IN_TIME: "the operation may go on; look at it with `sluice workflow list` or `sluice trace`",
}


class Answer(NamedTuple):
    """What a call was answered with, {} for nothing; `request` is the id of a change, for `sluice trace`.

    `etag` is that of what was read, for `If-Match` of an update; empty for what is not updated.
    """

    status: int
    body: Any
    request: str
    etag: str = ""


class Document(dict[str, Any]):
    """An object of an answer. A property that Sluice always sends is not there: another server has answered."""

    def __missing__(self, name: str) -> Any:
        raise RefusedError(f"the answer has no {name!r}, so it is not one of Sluice's", _WHOSE)


_WHOSE = "is --api (SLUICE_API) the address of an api-gateway?"


def path_of(*parts: str | int) -> str:
    """A path under /sluice/v1, with every part quoted. Raises UsageError for what can be no part of one."""
    return "/sluice/v1/" + "/".join(_quoted(str(part)) for part in parts)


def _quoted(part: str) -> str:
    if not part or "/" in part:
        raise UsageError(f"{part!r} is no name", "a name has at least one character, and no slash")
    try:
        quoted = quote(part, safe="")
    except UnicodeEncodeError:
        raise UsageError(f"{part!r} is no name", "write it in UTF-8") from None
    # Names of Pravega; but bare, they would mean this folder and the one above.
    return quoted.replace(".", "%2E") if part in (".", "..") else quoted


class Api:
    """One api-gateway. Every method raises RefusedError or UnreachableError.

    `credentials` go with every call; `ca` is a file of the authorities that its certificate may be of, empty for those
    of the machine. `waiting` is called once for each answer that takes long, by a thread of its own.
    """

    def __init__(
        self,
        base: str,
        *,
        transport: httpx.BaseTransport | None = None,
        connect_s: float = CONNECT_S,
        read_s: float = READ_S,
        credentials: Credentials | None = None,
        ca: str = "",
        waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self.base = shown(base)
        self._waiting = waiting
        try:
            timeout = httpx.Timeout(read_s, connect=connect_s)
            self._client = httpx.Client(
                base_url=base,
                timeout=timeout,
                transport=transport,
                trust_env=False,
                # Authorities are loaded for https alone: that takes as long as all the rest of a command.
                verify=False if base.lower().startswith("http:") else _authorities(ca),
                headers={} if credentials is None else {"Authorization": credentials.header},
            )
        except (httpx.InvalidURL, ValueError) as error:
            # Not the error: it may be a part of a password.
            raise UsageError(f"{self.base!r} is no address", "give --api or SLUICE_API as a URL") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def get(self, path: str, **parameters: object) -> Any:
        """The body of the answer; parameters that are None are left out."""
        return self._call("GET", path, None, parameters).body

    def read(self, path: str) -> Answer:
        """What is to be updated, with its ETag."""
        return self._call("GET", path, None, {})

    def change(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, **parameters: object
    ) -> Answer:
        return self._call(method, path, body, parameters, headers)

    def pages(self, path: str, limit: int | None = None, **parameters: object) -> Iterator[Any]:
        """The items of a list, page by page, at most `limit` of them."""
        after: str | None = None
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            page = self.get(path, limit=size, after=after, **parameters)
            items = page["items"]
            if not isinstance(items, list) or not all(isinstance(item, Document) for item in items):
                raise RefusedError(f"{self.base}{path} answered 200 and not as Sluice does", _WHOSE, status=200)
            yield from items
            after = page.get("next")
            if after is None:
                return
            left = None if left is None else left - len(items)

    def readiness(self) -> dict[str, Any]:
        """What /readyz answers, whether that is ready or not. Raises UnreachableError."""
        response = self._send("GET", "/readyz", None, {}, None)
        try:
            found = response.json()
        except ValueError:
            found = response.text
        return {"status": response.status_code, "answer": found}

    def events(self, path: str, **parameters: object) -> Iterator[dict[str, Any]]:
        """The server-sent events of a call as they come, each its data with its name as `event`."""
        sent = {name: _text(value) for name, value in parameters.items() if value is not None}
        # Each one may take as long as an answer; a feed beats more often.
        with _as_sentences(self.base, is_change=False), self._client.stream("GET", path, params=sent) as response:
            if not response.is_success:
                response.read()
                raise _refusal(response, "")
            yield from _events_in(response)

    def _call(
        self,
        method: str,
        path: str,
        body: Any,
        parameters: dict[str, object],
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        response = self._send(method, path, body, parameters, headers)
        request = response.headers.get("Sluice-Request", "")
        if response.is_success:
            return Answer(response.status_code, _document(response), request, response.headers.get("ETag", ""))
        raise _refusal(response, request)

    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        parameters: dict[str, object],
        headers: Mapping[str, str] | None,
    ) -> httpx.Response:
        sent = {
            name: [_text(one) for one in value] if isinstance(value, list) else _text(value)
            for name, value in parameters.items()
            if value is not None
        }
        with _as_sentences(self.base, is_change=method != "GET"), _notice_after(PATIENCE_S, self._waiting):
            return self._client.request(method, path, params=sent, json=body, headers=headers)


_MAY_GO_ON = (
    httpx.ReadTimeout,
    httpx.WriteTimeout,
    httpx.ReadError,
    httpx.WriteError,
    httpx.CloseError,
    httpx.RemoteProtocolError,
)
"""What ends a call that has reached a server."""


@contextmanager
def _as_sentences(base: str, *, is_change: bool) -> Iterator[None]:
    """What goes wrong with a call inside, as operators can read it. Raises UsageError, UnreachableError."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise UsageError(f"{error.object!r} is no text", "write it in UTF-8") from None
    except _MAY_GO_ON as error:
        how = "did not answer in time" if isinstance(error, httpx.TimeoutException) else "broke off without an answer"
        raise NoAnswerError(
            f"{base} {how} ({type(error).__name__})",
            "the requested operation may go on all the same; `sluice workflow list` shows what is under way"
            if is_change
            else "is that the address of an api-gateway's REST interface? Another: --api URL or SLUICE_API",
        ) from error
    except (httpx.TransportError, httpx.UnsupportedProtocol) as error:
        raise UnreachableError(
            f"cannot reach the API at {base}: {error}",
            f"its certificate must be of an authority in the file that {CA_VARIABLE} names, and for this host"
            if "CERTIFICATE_VERIFY_FAILED" in str(error)
            else "is Sluice running (`make status`, `kubectl get pods`)? Another address: --api URL or SLUICE_API",
        ) from error


def _events_in(response: httpx.Response) -> Iterator[dict[str, Any]]:
    """The events of a stream; each of ours has its data in one line."""
    name = ""
    for line in response.iter_lines():
        field, _, value = line.partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            try:
                found = json.loads(value, object_hook=Document)
            except ValueError:
                found = None
            if not isinstance(found, Document):
                raise _not_ours(response)
            yield Document(event=name, **found)


@contextmanager
def _notice_after(wait_s: float, notify: Callable[[], None]) -> Iterator[None]:
    timer = threading.Timer(wait_s, notify)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _authorities(ca: str) -> ssl.SSLContext:
    """Raises UsageError."""
    from sluice.security.contexts import ClientTls, client_context
    from sluice.security.watched import SecurityConfigError

    try:
        return client_context(ClientTls(CA_VARIABLE, ca))
    except SecurityConfigError as error:
        raise UsageError(str(error), "give the file with the certificates of the authorities") from error


def _document(response: httpx.Response) -> Document:
    try:
        found = json.loads(response.content, object_hook=Document) if response.content else Document()
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, Document):
        raise _not_ours(response)
    return found


def _not_ours(response: httpx.Response) -> RefusedError:
    status = response.status_code
    return RefusedError(f"{shown(str(response.url))} answered {status} and not as Sluice does", _WHOSE, status=status)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _refusal(response: httpx.Response, request: str) -> RefusedError | NoAnswerError:
    status = response.status_code
    try:
        problem = response.json()
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or not {"title", "status"} <= problem.keys():
        return _not_ours(response)
    reason = str(problem.get("reason") or "")
    detail = str(problem.get("detail") or problem.get("title") or f"HTTP {status}")
    message = f"{reason}: {detail}" if reason and reason not in detail else detail
    hint = _HINTS.get(reason) or _HINTS_BY_STATUS.get(status, "")
    if request:
        hint = f"{hint + '; ' if hint else ''}what happened to it: `sluice trace {request}`"
    if status == NO_ANSWER_IN_TIME:
        return NoAnswerError(message, hint, request=request)
    return RefusedError(message, hint, status=status, reason=reason, request=request)
