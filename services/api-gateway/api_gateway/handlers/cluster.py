"""RPCs that say where things are: controllers, segment stores, tokens to go there (controller-grpc-api 5.5, 5.10).

No barrier: where things are changes by itself, and callers come again when they were sent to the wrong place.
"""

from api_gateway.convert import stream_of
from api_gateway.errors import NoOwnerError
from api_gateway.generated import controller_pb2 as pb
from api_gateway.handlers import Context, Handler
from api_gateway.reads import Reads
from sluice.domain.segment_id import segment_name
from sluice.segmentstore.routing import container_of

SERVICE = "api-gateway"
PROTOCOL = "grpc"


class ClusterHandlers:
    """`own` is the host:port this gateway is reached at: it is always in the list, even before anybody knows it."""

    def __init__(self, reads: Reads, own: str, container_count: int) -> None:
        self._reads = reads
        self._own = own
        self._container_count = container_count

    def table(self) -> dict[str, Handler]:
        return {
            "getURI": self.uri,
            "getControllerServerList": self.servers,
            "getDelegationToken": self.token,
        }

    async def uri(self, request: pb.SegmentId, _context: Context) -> pb.NodeUri:
        """Where a segment would be if it existed; nobody looks whether it does."""
        name = segment_name(*stream_of(request.streamInfo), request.segmentId)
        container = container_of(name, self._container_count)
        host = self._reads.cluster().containers.get(container)
        if host is None:
            raise NoOwnerError(f"no segment store is known to run container {container}")
        return pb.NodeUri(endpoint=host.address, port=host.port)

    async def servers(self, _request: pb.ServerRequest, _context: Context) -> pb.ServerResponse:
        members = self._reads.cluster().members.values()
        known = (m.endpoints.get(PROTOCOL) for m in members if m.service == SERVICE)
        answer = pb.ServerResponse()
        for endpoint in dict.fromkeys((self._own, *sorted(filter(None, known)))):
            host, _, port = endpoint.rpartition(":")
            answer.nodeURI.add(endpoint=host, port=int(port))
        return answer

    async def token(self, _request: pb.StreamInfo, _context: Context) -> pb.DelegationToken:
        """Empty: that is how clients are told that nothing is protected."""
        return pb.DelegationToken()
