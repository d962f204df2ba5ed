"""RPCs on scopes, and the listings (controller-grpc-api 5.1, 5.2, 6.5)."""

from collections.abc import Iterable
from itertools import islice
from typing import Any

from api_gateway.convert import name_in_token, scope_of, token_of
from api_gateway.errors import BadRequestError
from api_gateway.handlers import Context, Handler
from api_gateway.handlers.submitting import submit
from api_gateway.reads import Names, Reads, streams_after, streams_with_tag
from api_gateway.requests import Requests
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.ids import ResourceKind
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive

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
        return await submit(self._requests, DeleteScope(scope=scope_of(request.scope)), context)

    async def delete_with_all_in_it(self, request: pb.ScopeInfo, context: Context) -> Any:
        return await submit(self._requests, DeleteScopeRecursive(scope=scope_of(request.scope)), context)

    async def exists(self, request: pb.ScopeInfo, _context: Context) -> pb.ExistsResponse:
        return pb.ExistsResponse(exists=await self._reads.scope_exists(scope_of(request.scope)))

    async def list_scopes(self, request: pb.ScopesRequest, _context: Context) -> pb.ScopesResponse:
        token = request.continuationToken.token
        after = name_in_token(token)
        page, following = _page(await self._reads.scopes(after), token)
        return pb.ScopesResponse(scopes=page, continuationToken=following)

    async def list_streams(self, request: pb.StreamsInScopeRequest, _context: Context) -> pb.StreamsInScopeResponse:
        token = request.continuationToken.token
        return await self._list(request.scope.scope, token, streams_after(name_in_token(token)))

    async def list_streams_with_tag(
        self, request: pb.StreamsInScopeWithTagRequest, _context: Context
    ) -> pb.StreamsInScopeResponse:
        if not request.tag:
            raise BadRequestError("the tag is empty")
        token = request.continuationToken.token
        wanted = streams_with_tag(request.tag, name_in_token(token), internal=False)
        return await self._list(request.scope.scope, token, wanted)

    async def _list(self, scope: str, token: str, wanted: Names) -> pb.StreamsInScopeResponse:
        names = await self._reads.names_in(scope_of(scope), wanted)
        if names is None:
            return pb.StreamsInScopeResponse(status=pb.StreamsInScopeResponse.SCOPE_NOT_FOUND)
        page, following = _page(names, token)
        answer = pb.StreamsInScopeResponse(continuationToken=following)
        for name in page:
            answer.streams.add(scope=scope, stream=name)
        return answer

    async def list_tables(self, request: pb.KVTablesInScopeRequest, _context: Context) -> pb.KVTablesInScopeResponse:
        scope, token = scope_of(request.scope.scope), request.continuationToken.token
        after = name_in_token(token)
        names = await self._reads.names_in(scope, lambda members: members.after(ResourceKind.TABLE, after))
        if names is None:
            return pb.KVTablesInScopeResponse(status=pb.KVTablesInScopeResponse.SCOPE_NOT_FOUND)
        page, following = _page(names, token)
        answer = pb.KVTablesInScopeResponse(continuationToken=following)
        for name in page:
            answer.kvtables.add(scope=scope, kvtName=name)
        return answer


def _page(names: Iterable[str], token: str) -> tuple[list[str], pb.ContinuationToken]:
    """The next page and the token behind it; the empty page, which is the end, gives the token back."""
    page = list(islice(names, PAGE_SIZE))
    return page, pb.ContinuationToken(token=token_of(page[-1]) if page else token)
