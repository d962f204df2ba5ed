"""Where the gateway is put together."""

from api_gateway.handlers import Handler
from api_gateway.handlers.cluster import PROTOCOL, SERVICE, ClusterHandlers
from api_gateway.handlers.groups import GroupHandlers
from api_gateway.handlers.reports import ReportHandlers
from api_gateway.handlers.scaling import ScaleHandlers
from api_gateway.handlers.scopes import ScopeHandlers
from api_gateway.handlers.segments import SegmentHandlers
from api_gateway.handlers.streams import StreamHandlers
from api_gateway.handlers.tables import TableHandlers
from api_gateway.handlers.transactions import TransactionHandlers
from api_gateway.reads import Reads
from api_gateway.requests import Requests
from api_gateway.server import ControllerServer
from api_gateway.settings import GatewaySettings
from sluice.runtime import Runtime, run_service


def handlers(runtime: Runtime, settings: GatewaySettings) -> dict[str, Handler]:
    """The handlers of all RPCs that are served, by name."""
    reads = Reads(runtime.journal)
    requests = Requests(runtime, settings.max_pending, settings.request_timeout_s)
    return {
        **ScopeHandlers(reads, requests).table(),
        **StreamHandlers(reads, requests).table(),
        **ScaleHandlers(reads, requests).table(),
        **GroupHandlers(reads, requests).table(),
        **ReportHandlers(reads, requests).table(),
        **TableHandlers(reads, requests).table(),
        **TransactionHandlers(reads, requests).table(),
        **SegmentHandlers(reads).table(),
        **ClusterHandlers(reads, settings.grpc_endpoint, settings.container_count).table(),
    }


async def start(runtime: Runtime, settings: GatewaySettings) -> None:
    """Serve until the runtime's stack is unwound. Raises OSError if the port is taken."""
    server = ControllerServer(handlers(runtime, settings), settings.max_calls)
    runtime.stack.push_async_callback(server.stop, settings.stop_grace_s)
    await server.start(settings.host, settings.grpc_port)
    runtime.endpoints[PROTOCOL] = settings.grpc_endpoint
    runtime.endpoints["rest"] = settings.rest_endpoint


def main() -> None:
    """Run the service with the settings of the environment."""
    settings = GatewaySettings()
    run_service(SERVICE, settings, lambda runtime: start(runtime, settings))
