"""RPCs on key-value tables (controller-grpc-api 5.9)."""

from typing import Any

from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.pravega.convert import name_of, ranges_message, scope_of
from api_gateway.pravega.convert_tables import table_config_message, table_config_of, table_of
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.pravega.handlers.submitting import submit
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.errors import NotFoundError
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.table.state import current_segments
from sluice.security.resources import Permission, table_resource
from sluice.security.tokens import TokenSigner


class TableHandlers:
    """What concerns a table as a whole, and its partitions."""

    def __init__(self, reads: Reads, requests: Requests, tokens: TokenSigner) -> None:
        self._reads = reads
        self._requests = requests
        self._tokens = tokens

    def table(self) -> dict[str, Handler]:
        return {
            "createKeyValueTable": self.create,
            "getKeyValueTableConfiguration": self.configuration,
            "getCurrentSegmentsKeyValueTable": self.segments,
            "deleteKeyValueTable": self.delete,
        }

    async def create(self, request: pb.KeyValueTableConfig, context: Context) -> Any:
        """An empty name is the domain's to refuse: it has a status of its own."""
        command = CreateTable(
            scope=scope_of(request.scope), table=name_of(request.kvtName), config=table_config_of(request)
        )
        return await submit(self._requests, command, context)

    async def delete(self, request: pb.KeyValueTableInfo, context: Context) -> Any:
        id = table_of(request)
        command = DeleteTable(*id, await self._reads.creation_id(id.aggregate))
        return await submit(self._requests, command, context)

    async def configuration(self, request: pb.KeyValueTableInfo, _context: Context) -> pb.KeyValueTableConfigResponse:
        id = table_of(request)
        table = await self._reads.table_or_none(id)
        if table is None:
            return pb.KeyValueTableConfigResponse(status=pb.KeyValueTableConfigResponse.TABLE_NOT_FOUND)
        return pb.KeyValueTableConfigResponse(config=table_config_message(id, table.config))

    async def segments(self, request: pb.KeyValueTableInfo, _context: Context) -> pb.SegmentRanges:
        """In the order of their ranges, as they are stored; the names of segments have a suffix that is not here.

        No store accepts the token, and no client sends it: `getDelegationToken` gives the one that counts.
        """
        id = table_of(request)
        table = await self._reads.table_or_none(id)
        if table is None:
            raise NotFoundError(f"key-value table {id} does not exist")
        response = ranges_message(id, current_segments(table))
        response.delegationToken = self._tokens.of(Permission.READ_UPDATE, table_resource(*id))
        return response
