"""RPCs that route clients: controllers, segment stores (controller-grpc-api 5.5, 5.10).

No barrier: routes change by themselves, and a client that was sent to the wrong host calls again. An IPv6 address has
its brackets: the PyPI client puts a colon and the port behind it, and Java's takes both forms.
"""

from api_gateway.edge.errors import BadRequestError, NoOwnerError
from api_gateway.edge.reads import Reads
from api_gateway.pravega.convert import stream_of
from api_gateway.pravega.handlers import Context, Handler
from api_gateway.settings import GatewaySettings
from sluice.addresses import bracketed, host_and_port
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.segment import segment_name
from sluice.pravega.routing import container_of

SERVICE = "api-gateway"
PROTOCOL = "grpc"
WORKERS = "stream-workflows"
"""The service that does the periodic work on streams."""

ALL_STREAMS = 0
"""The only bucket there is."""


class ClusterHandlers:
    """Where this gateway is reached is always in the list of controllers, even before the journal has it."""

    def __init__(self, reads: Reads, settings: GatewaySettings) -> None:
        self._reads = reads
        self._settings = settings

    def table(self) -> dict[str, Handler]:
        return {
            "getURI": self.uri,
            "getControllerServerList": self.servers,
            "getControllerToBucketMapping": self.buckets,
        }

    async def uri(self, request: pb.SegmentId, _context: Context) -> pb.NodeUri:
        """Where a segment would be if it existed, which is not looked up."""
        name = segment_name(*stream_of(request.streamInfo), request.segmentId)
        container = container_of(name, self._settings.container_count)
        host = self._reads.cluster().containers.get(container)
        if host is None:
            raise NoOwnerError(f"no segment store is known to run container {container}")
        return pb.NodeUri(endpoint=bracketed(host.address), port=host.port)

    async def servers(self, _request: pb.ServerRequest, _context: Context) -> pb.ServerResponse:
        members = self._reads.cluster().members.values()
        known = (m.endpoints.get(PROTOCOL) for m in members if m.service == SERVICE)
        response = pb.ServerResponse()
        for endpoint in dict.fromkeys((self._settings.grpc_endpoint, *sorted(filter(None, known)))):
            host, port = host_and_port(endpoint)
            response.nodeURI.add(endpoint=bracketed(host), port=port)
        return response

    async def buckets(
        self, request: pb.ControllerToBucketMappingRequest, _context: Context
    ) -> pb.ControllerToBucketMappingResponse:
        """Who sees to retention and watermarks: every instance of the service that does, each for a share of bucket 0.

        Callers want to know which processes take part and that no stream is left out. Streams are not dealt out
        in buckets here, their periodic work belongs to their partition's owner; so all streams are one bucket,
        and an empty answer means that no process works on them.
        """
        if request.serviceType not in pb.ControllerToBucketMappingRequest.BucketType.values():
            raise BadRequestError(f"{request.serviceType} is no serviceType")
        response = pb.ControllerToBucketMappingResponse()
        for member in self._reads.cluster().members.values():
            if member.service == WORKERS:
                response.mapping[member.instance].id.append(ALL_STREAMS)
        return response
