"""Tokens for clients to show to the segment stores (security 3.4 and 4.2).

Every client asks for one, also where none are in use: then the answer is empty before the request is looked at. Tokens
are given out wherever there is a key to sign them, whether or not callers have to prove who they are.
"""

from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.reads import Reads
from api_gateway.pravega.convert import stream_of
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.pravega.permissions import granted
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.ids import StreamId, TableId
from sluice.domain.names import SYSTEM_SCOPE, is_user_name
from sluice.domain.segment import KVT_SUFFIX
from sluice.security.caller import CALLER, ForbiddenError
from sluice.security.resources import Permission, mapped_resource, stream_resource, table_resource
from sluice.security.tokens import TokenSigner


class TokenHandlers:
    def __init__(self, reads: Reads, tokens: TokenSigner) -> None:
        self._reads = reads
        self._tokens = tokens

    def table(self) -> dict[str, Handler]:
        return {"getDelegationToken": self.token}

    async def token(self, request: pb.StreamInfo, _context: Context) -> pb.DelegationToken:
        """That the name is a stream's is not asked: Rust's reader groups and tables have no stream.

        The name of a key-value table is Java's way to ask for the table. It says so nowhere, and no store accepts a
        claim on the name alone.
        """
        if not self._tokens.is_on:
            return pb.DelegationToken()
        id = _named(request)
        permission = granted(request.accessOperation)
        if id.scope == SYSTEM_SCOPE:
            # The segment stores keep what they know of all segments in that scope.
            await self._reads.stream(id)
        # Whether readers may write an internal stream is the boundary's to know. No table has such a name.
        at_least_read = max(permission, Permission.READ)
        if id.name.startswith("_"):
            claims, permission = _permitted(id, Permission.READ, is_table=False), at_least_read
        else:
            claims = _permitted(id, at_least_read, is_table=await self._is_table(id))
        return pb.DelegationToken(delegationToken=self._tokens.of(permission, *claims))

    async def _is_table(self, id: StreamId) -> bool:
        """Behind a barrier only if nothing of the name is known, and there may be such a table.

        Tokens last through an outage of the journal.
        """
        if not is_user_name(id.name):
            return False
        table = TableId(*id)
        if self._reads.known_table(table) is not None:
            return True
        return self._reads.known_stream(id) is None and await self._reads.table_or_none(table) is not None


def _named(request: pb.StreamInfo) -> StreamId:
    """Stores take a claim apart at slashes and colons: a name with one could open another stream."""
    id = stream_of(request)
    if any(sign in part for sign in "/:" for part in id):
        raise BadRequestError(f"{id} is no name of a stream")
    return id


def _permitted(id: StreamId, needed: Permission, is_table: bool) -> list[str]:
    """The claims on a stream and on the table of the same name, of those that the caller has the permission for.

    Raises ForbiddenError if that is neither.
    """
    claims = {mapped_resource(*id): stream_resource(*id)}
    if is_table:
        claims[table_resource(*id)] = stream_resource(id.scope, id.name + KVT_SUFFIX)
    caller = CALLER.get()
    permitted = [claim for of, claim in claims.items() if caller is None or caller.permission_on(of) >= needed]
    if not permitted:
        raise ForbiddenError
    return permitted
