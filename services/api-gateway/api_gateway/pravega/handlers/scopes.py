"""RPCs on scopes, and the listings (controller-grpc-api 5.1, 5.2, 6.5)."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.listing import Listing
from api_gateway.edge.reads import Names, Reads, streams_after, streams_with_tag
from api_gateway.edge.requests import Requests
from api_gateway.pravega.convert import name_in_token, scope_of, token_of
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.pravega.handlers.submitting import submit
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.ids import ResourceKind
from sluice.domain.names import scope_aggregate
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.security.resources import scope_resource, stream_resource, table_resource

PAGE_SIZE = 1000


class ScopeHandlers:
    """What concerns a scope as a whole."""

    def __init__(self, reads: Reads, requests: Requests) -> None:
        self._reads = reads
        self._requests = requests

    def table(self) -> dict[str, Handler]:
        return {
            "createScope": self.create,
            "checkScopeExists": self.exists,
            "deleteScope": self.delete,
            "deleteScopeRecursive": self.delete_with_all_in_it,
            "listScopes": self.list_scopes,
            "listStreamsInScope": self.list_streams,
            "listStreamsInScopeForTag": self.list_streams_with_tag,
            "listKeyValueTablesInScope": self.list_tables,
        }

    async def create(self, request: pb.ScopeInfo, context: Context) -> Any:
        return await submit(self._requests, CreateScope(scope=scope_of(request.scope)), context)

    async def delete(self, request: pb.ScopeInfo, context: Context) -> Any:
        return await self._delete(DeleteScope, request, context)

    async def delete_with_all_in_it(self, request: pb.ScopeInfo, context: Context) -> Any:
        return await self._delete(DeleteScopeRecursive, request, context)

    async def _delete(
        self, kind: type[DeleteScope | DeleteScopeRecursive], request: pb.ScopeInfo, context: Context
    ) -> Any:
        scope = scope_of(request.scope)
        command = kind(scope, await self._reads.creation_id(scope_aggregate(scope)))
        return await submit(self._requests, command, context)

    async def exists(self, request: pb.ScopeInfo, _context: Context) -> pb.ExistsResponse:
        return pb.ExistsResponse(exists=await self._reads.scope_exists(scope_of(request.scope)))

    async def list_scopes(self, request: pb.ScopesRequest, _context: Context) -> pb.ScopesResponse:
        page = await _page(self._reads.scopes, scope_resource, request.continuationToken.token)
        assert page is not None, "there are always scopes"
        return pb.ScopesResponse(scopes=page[0], continuationToken=page[1])

    async def list_streams(self, request: pb.StreamsInScopeRequest, _context: Context) -> pb.StreamsInScopeResponse:
        return await self._list(request.scope.scope, request.continuationToken.token, streams_after)

    async def list_streams_with_tag(
        self, request: pb.StreamsInScopeWithTagRequest, _context: Context
    ) -> pb.StreamsInScopeResponse:
        if not request.tag:
            raise BadRequestError("the tag is empty")
        wanted = partial(streams_with_tag, request.tag, internal=False)
        return await self._list(request.scope.scope, request.continuationToken.token, wanted)

    async def _list(self, scope: str, token: str, wanted: Callable[[str], Names]) -> pb.StreamsInScopeResponse:
        scope = scope_of(scope)
        page = await _page(
            lambda behind: self._reads.names_in(scope, wanted(behind)), partial(stream_resource, scope), token
        )
        if page is None:
            return pb.StreamsInScopeResponse(status=pb.StreamsInScopeResponse.SCOPE_NOT_FOUND)
        response = pb.StreamsInScopeResponse(continuationToken=page[1])
        for name in page[0]:
            response.streams.add(scope=scope, stream=name)
        return response

    async def list_tables(self, request: pb.KVTablesInScopeRequest, _context: Context) -> pb.KVTablesInScopeResponse:
        scope = scope_of(request.scope.scope)
        page = await _page(
            lambda behind: self._reads.names_in(scope, lambda members: members.after(ResourceKind.TABLE, behind)),
            partial(table_resource, scope),
            request.continuationToken.token,
        )
        if page is None:
            return pb.KVTablesInScopeResponse(status=pb.KVTablesInScopeResponse.SCOPE_NOT_FOUND)
        response = pb.KVTablesInScopeResponse(continuationToken=page[1])
        for name in page[0]:
            response.kvtables.add(scope=scope, kvtName=name)
        return response


async def _page(
    fetch: Callable[[str], Awaitable[Iterator[str] | None]], resource: Callable[[str], str], token: str
) -> tuple[list[str], pb.ContinuationToken] | None:
    """The next page and the token behind it; the empty page, which is the end, gives the token back.

    None if there is no such scope.
    """
    page = await Listing(fetch, str, resource, str).page(name_in_token(token), PAGE_SIZE)
    if page is None:
        return None
    names = page.items
    return names, pb.ContinuationToken(token=token_of(names[-1]) if names else token)
