"""Listings, walked as clients walk them: page by page with the token given, until a page is empty.

On the way the rules clients rely on are checked (controller-grpc-api 6.5): a page that is not empty brings a new token.
"""

from collections.abc import Callable, Iterable
from typing import Any

from google.protobuf.message import Message

from conformance import views
from conformance.answers import Refused
from conformance.case import Step, call, step
from conformance.run import Run, ScopeName
from sluice.controller_api import controller_pb2 as pb

_MAX_PAGES = 60


async def _walk(
    run: Run, rpc: str, build: Callable[[pb.ContinuationToken], Message], names: Callable[[Any], list[str]]
) -> Any:
    """Sorted names, with duplicates if there are any; a refusal or a status that is not SUCCESS instead of them."""
    found: list[str] = []
    token = pb.ContinuationToken()
    for _ in range(_MAX_PAGES):
        page = await run.ask(rpc, build(token))
        if isinstance(page, Refused):
            return page
        if "status" in page.DESCRIPTOR.fields_by_name and (status := views.status(run, page)) != "SUCCESS":
            return status
        if not (listed := names(page)):
            return sorted(found)
        found += listed
        following: pb.ContinuationToken = page.continuationToken  # type: ignore[attr-defined]
        assert following.token not in ("", token.token), f"{rpc}: the token after a full page is {following.token!r}"
        token = following
    raise AssertionError(f"{rpc} does not come to an end")


def scopes() -> Step:
    """All scopes of the case."""

    def names(page: pb.ScopesResponse) -> list[str]:
        return list(page.scopes)

    async def act(run: Run) -> Any:
        found = await _walk(run, "listScopes", lambda token: pb.ScopesRequest(continuationToken=token), names)
        return found if isinstance(found, Refused) else sorted(run.short(name) for name in found if run.is_own(name))

    return step("listScopes", act)


def _in_scope(
    rpc: str,
    scope: ScopeName,
    build: Callable[[pb.ScopeInfo, pb.ContinuationToken], Message],
    listed: Callable[[Any], Iterable[tuple[str, str]]],
) -> Step:
    """All names that are listed; `listed` gives the scope and the name of each."""

    async def act(run: Run) -> Any:
        info = pb.ScopeInfo(scope=run.scope(scope))
        return await _walk(
            run,
            rpc,
            lambda token: build(info, token),
            lambda page: [name for of, name in listed(page) if of == info.scope],
        )

    return step(rpc, act)


def streams(scope: ScopeName = "sc") -> Step:
    """All streams; mark streams are among them."""
    return _in_scope(
        "listStreamsInScope",
        scope,
        lambda info, token: pb.StreamsInScopeRequest(scope=info, continuationToken=token),
        lambda page: ((one.scope, one.stream) for one in page.streams),
    )


def streams_with(tag: str, scope: ScopeName = "sc") -> Step:
    return _in_scope(
        "listStreamsInScopeForTag",
        scope,
        lambda info, token: pb.StreamsInScopeWithTagRequest(scope=info, tag=tag, continuationToken=token),
        lambda page: ((one.scope, one.stream) for one in page.streams),
    )


def tables(scope: ScopeName = "sc") -> Step:
    return _in_scope(
        "listKeyValueTablesInScope",
        scope,
        lambda info, token: pb.KVTablesInScopeRequest(scope=info, continuationToken=token),
        lambda page: ((one.scope, one.kvtName) for one in page.kvtables),
    )


def scopes_from(token: str) -> Step:
    """One page behind a made-up token: the names of the case."""
    request = pb.ScopesRequest(continuationToken=pb.ContinuationToken(token=token))
    return call("listScopes", lambda _run: request, lambda run, page: sorted(filter(run.is_own, page.scopes)))


def answered_token(run: Run) -> str:
    """The token in the latest answer to listStreamsInScope."""
    page: pb.StreamsInScopeResponse = run.answers["listStreamsInScope"]
    return page.continuationToken.token


def streams_from(token: str | Callable[[Run], str], scope: ScopeName = "sc") -> Step:
    """One page: that behind a token."""
    return call(
        "listStreamsInScope",
        lambda run: pb.StreamsInScopeRequest(
            scope=pb.ScopeInfo(scope=run.scope(scope)),
            continuationToken=pb.ContinuationToken(token=token if isinstance(token, str) else token(run)),
        ),
        lambda run, page: (views.status(run, page), sorted(one.stream for one in page.streams)),
    )
