"""What creates all that the calls are about, on each side of the gateway."""

from conformance.secured.operations import UPDATE, Operation, needs
from conformance.secured.rest_calls import CALLS, call_of
from conformance.secured.rpcs import RPCS, rpc
from conformance.secured.users import On
from sluice.controller_api import controller_pb2 as pb

_OTHERS = (
    "createStream",
    "createReaderGroup",
    "createKeyValueTable",
    "PUT /sluice/v1/scopes/sec/streams/st",
    "PUT /sluice/v1/scopes/sec/readergroups/rg",
    "PUT /sluice/v1/scopes/sec/tables/kv",
)
_BY_ID = {operation.id: operation for operation in (*RPCS, *CALLS)}

CREATIONS: tuple[Operation, ...] = (
    rpc("createScope", pb.ScopeInfo(scope="sec"), needs(UPDATE, On.ROOT)),
    call_of("PUT", "/sluice/v1/scopes/sec", None, needs(UPDATE, On.ROOT)),
    *(_BY_ID[id] for id in _OTHERS),
)
