"""Where the gateway is put together."""

import time

from fastapi import FastAPI

from api_gateway.app import build_app, close_app, open_app
from api_gateway.console.dead_letters import dead_letters_of
from api_gateway.console.demonstration import Demonstration, why_not
from api_gateway.console.feed.feeds import Feeds, Hello
from api_gateway.console.feed.watch import ChangeWatch
from api_gateway.console.group_readers import GroupReaders
from api_gateway.console.lookback import LookbackHelper
from api_gateway.console.overview import Overview
from api_gateway.console.page_files import version_of_page
from api_gateway.console.partitions import partitions_of
from api_gateway.console.rates import Rates
from api_gateway.console.statistics import follow_statistics
from api_gateway.console.tally import Tally
from api_gateway.console.what_ifs import WhatIfs
from api_gateway.edge.heartbeats import follow_heartbeats
from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.edge.rest.backend import Backend
from api_gateway.edge.security.authentication import OIDC_KEYS, authentication_of
from api_gateway.edge.security.browsers import browsers_of
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.quotas import Quotas
from api_gateway.edge.security.sessions import Sessions
from api_gateway.edge.worker import Worker
from api_gateway.pravega.bounds import channel_options
from api_gateway.pravega.handlers import Handler
from api_gateway.pravega.handlers.cluster import PROTOCOL, SERVICE, ClusterHandlers
from api_gateway.pravega.handlers.groups import GroupHandlers
from api_gateway.pravega.handlers.reports import ReportHandlers
from api_gateway.pravega.handlers.scaling import ScaleHandlers
from api_gateway.pravega.handlers.scopes import ScopeHandlers
from api_gateway.pravega.handlers.segments import SegmentHandlers
from api_gateway.pravega.handlers.streams import StreamHandlers
from api_gateway.pravega.handlers.tables import TableHandlers
from api_gateway.pravega.handlers.tokens import TokenHandlers
from api_gateway.pravega.handlers.transactions import TransactionHandlers
from api_gateway.pravega.server import ControllerServer
from api_gateway.settings import GatewaySettings, PageMode
from sluice.policies.rules import Rules
from sluice.runtime import Runtime, run_service
from sluice.security.tokens import NO_SIGNER, TokenSigner
from sluice.security.watched import SecurityConfigError
from sluice.settings import settings_of
from sluice.workflows.data_plane import connect


def handlers(
    reads: Reads, requests: Requests, settings: GatewaySettings, tokens: TokenSigner = NO_SIGNER
) -> dict[str, Handler]:
    """The handlers of all RPCs that are served, by name."""
    return {
        **ScopeHandlers(reads, requests).table(),
        **StreamHandlers(reads, requests).table(),
        **ScaleHandlers(reads, requests).table(),
        **GroupHandlers(reads, requests).table(),
        **ReportHandlers(reads, requests).table(),
        **TableHandlers(reads, requests, tokens).table(),
        **TransactionHandlers(reads, requests, tokens).table(),
        **SegmentHandlers(reads, tokens).table(),
        **ClusterHandlers(reads, settings.grpc_endpoint, settings.container_count).table(),
        **TokenHandlers(reads, tokens).table(),
    }


async def start(runtime: Runtime, settings: GatewaySettings, app: FastAPI) -> None:
    """Serve until the runtime's stack is unwound. Raises OSError if the port is taken."""
    reads = Reads(runtime.journal)
    requests = Requests(runtime, settings.max_pending, settings.request_timeout_s)
    # Behind all that takes calls: REST can still say what goes on.
    runtime.stack.callback(requests.end)
    served = handlers(reads, requests, settings, runtime.tokens)
    server = ControllerServer(served, settings.max_calls, app.state.guard, channel_options(settings))
    # Reported until the process ends, for the HTTP server is the last to stop.
    runtime.checks["grpc"] = server.problem
    runtime.stack.push_async_callback(server.stop, settings.stop_grace_s)
    await server.start(settings.host, settings.grpc_port, runtime.identity)
    refusal = why_not(secured=settings.auth_enabled or runtime.identity is not None)
    demonstration = Demonstration(settings.grpc_endpoint, runtime.clock.now_ms, refusal)
    runtime.stack.push_async_callback(demonstration.close)
    letters = dead_letters_of(
        settings.kafka_client(),
        runtime.producer,
        settings.partitions,
        runtime.source,
        runtime.clock,
        runtime.journal.chance,
    )
    watch = ChangeWatch(runtime.journal)
    hello = Hello(settings.cluster_name, await version_of_page(settings.page_mode))
    lookback = LookbackHelper(settings.instance)
    runtime.stack.push_async_callback(lookback.stop)
    store, worker = connect(runtime, settings.store_timeout_s), Worker()
    rates = Rates(store, reads.known_stream)
    runtime.stack.push_async_callback(rates.stop)
    backend = Backend(
        reads=reads,
        requests=requests,
        store=store,
        dead_letters=letters,
        last_heartbeats=follow_heartbeats(runtime),
        statistics=follow_statistics(runtime),
        demonstration=demonstration,
        container_count=settings.container_count,
        clock=runtime.clock,
        cluster=settings.cluster_name,
        feeds=Feeds(watch, runtime.clock, hello, app.state.places.feeds),
        overview=Overview(runtime.journal, Tally(runtime.journal, watch), letters, runtime.clock),
        partitions=partitions_of(settings.kafka_client(), settings.partitions, runtime.clock),
        lookback=lookback,
        rates=rates,
        what_ifs=WhatIfs(Rules.of(settings.scale_cooldown_s, settings.retention_tick_s, settings.retention_pause_s)),
        readers=GroupReaders(store, reads, worker, runtime.clock, lookback),
        worker=worker,
    )
    runtime.stack.push_async_callback(backend.partitions.stop)
    runtime.stack.push_async_callback(backend.overview.stop)
    open_app(app, backend)
    runtime.stack.push_async_callback(close_app, app, settings.stop_grace_s)
    # First of all, and long before the HTTP server, which would wait for the feeds.
    runtime.stack.push_async_callback(backend.feeds.stop)
    runtime.endpoints[PROTOCOL] = settings.grpc_endpoint
    runtime.endpoints["rest"] = settings.rest_endpoint


def guard_of(runtime: Runtime, settings: GatewaySettings) -> Guard | None:
    """The guard before all calls, None where authentication and quotas are off. Raises SecurityConfigError."""
    authentication = authentication_of(settings)
    quotas = Quotas(settings)
    if authentication is None:
        if settings.quota_per_user_s:
            raise SecurityConfigError(
                "SLUICE_QUOTA_PER_USER_S is given, and SLUICE_AUTH_ENABLED is not: nobody would be known"
            )
        return Guard(None, readers_write=True, quotas=quotas) if quotas.of_scopes else None
    runtime.security["callers"] = ", ".join(authentication.authenticator.methods)
    runtime.watch(*authentication.watched)
    if authentication.fetched is not None:
        runtime.degraded[OIDC_KEYS] = authentication.fetched.problem
    runtime.stack.callback(authentication.close)
    return Guard(authentication.authenticator, settings.auth_reader_groups_with_read, quotas)


def sessions_of(settings: GatewaySettings, tokens: TokenSigner) -> Sessions | None:
    """The sessions of browsers; None where callers are not authenticated, or there is no page."""
    if not settings.auth_enabled or settings.page_mode is PageMode.OFF:
        return None
    return Sessions(lambda: tokens.key, time.time)


def main() -> None:
    """Run the service with the settings of the environment."""
    settings = settings_of(GatewaySettings)
    apps: list[FastAPI] = []

    def serve(runtime: Runtime) -> FastAPI:
        guard = guard_of(runtime, settings)
        sessions = sessions_of(settings, runtime.tokens)
        apps.append(build_app(runtime, settings.max_http_connections, guard, browsers_of(settings), sessions))
        return apps[0]

    run_service(SERVICE, settings, lambda runtime: start(runtime, settings, apps[0]), serve)
