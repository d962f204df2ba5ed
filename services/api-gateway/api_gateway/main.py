"""Where the gateway is put together."""

import time
from typing import Any

from fastapi import FastAPI

from api_gateway import metrics
from api_gateway.app import build_app, close_app, open_app
from api_gateway.console.dead_letters import DeadLetters
from api_gateway.console.demonstration import Demonstration, grpc_address, why_not
from api_gateway.console.feed.feeds import Feeds, Hello
from api_gateway.console.feed.watch import ChangeWatch
from api_gateway.console.group_readers import GroupReaders
from api_gateway.console.last_hour import LastHour
from api_gateway.console.lookback import Lookback, LookbackHelper
from api_gateway.console.overview import Overview
from api_gateway.console.page_files import version_of_page
from api_gateway.console.partitions import Partitions
from api_gateway.console.rates import Rates
from api_gateway.console.statistics import Statistics, follow_statistics
from api_gateway.console.stored_data import StoredData
from api_gateway.console.stream_groups import StreamGroups
from api_gateway.console.stream_loads import StreamLoads
from api_gateway.console.table_sizes import TableSizes
from api_gateway.console.tally import Tally
from api_gateway.console.what_ifs import WhatIfs
from api_gateway.console.written import follow_written
from api_gateway.edge.containers import Containers
from api_gateway.edge.group_states import GroupStates
from api_gateway.edge.heartbeats import LastHeartbeats, follow_heartbeats
from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.edge.rest.parts import Parts
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
from api_gateway.pravega.hold import Hold
from api_gateway.pravega.server import ControllerServer
from api_gateway.settings import GatewaySettings, PageMode
from sluice.engine.ports import Clock
from sluice.policies.rules import Rules
from sluice.pravega.store import SegmentStore
from sluice.runtime import Runtime, Service
from sluice.security.tokens import NO_SIGNER, TokenSigner
from sluice.security.watched import SecurityConfigError
from sluice.settings import settings_of
from sluice.workflows.data_plane import connect

CONSOLE = "console"
"""The name of the service in a process that serves nothing of Pravega: no client is sent to a member of that name."""


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
        **ClusterHandlers(reads, settings).table(),
        **TokenHandlers(reads, tokens).table(),
    }


async def start(runtime: Runtime, settings: GatewaySettings, app: FastAPI, lookback: Lookback | None = None) -> None:
    """Serve until the runtime's stack is unwound; until the journal is loaded calls are held.

    Without a `lookback` a helper process reads the past. Raises OSError if the port is taken.
    """
    reads = Reads(runtime.journal)
    requests = Requests(runtime, settings.max_pending, settings.request_timeout_s)
    # Behind all that takes calls: REST can still say what goes on.
    runtime.stack.callback(requests.end)
    if settings.serves.pravega:
        served = handlers(reads, requests, settings, runtime.tokens)
        if not runtime.journal.loaded.is_set():
            served = _held(runtime, served)
        await _serve_grpc(runtime, settings, app.state.guard, served)
    await runtime.journal.loaded.wait()
    store, worker = connect(runtime, settings.store_timeout_s), Worker()
    parts: dict[Any, Any] = {
        Reads: reads,
        Requests: requests,
        Clock: runtime.clock,
        SegmentStore: store,
        Worker: worker,
        Containers: Containers(reads, settings.container_count),
        LastHeartbeats: follow_heartbeats(runtime),
        GroupStates: GroupStates(store, reads, worker),
    }
    metrics.CONSOLE.set(settings.serves.console)
    if settings.serves.console:
        parts |= await _console(runtime, settings, parts, app.state.capacity.feeds, lookback)
    open_app(app, parts)
    runtime.stack.push_async_callback(close_app, app, settings.stop_grace_s)
    if settings.serves.console:
        # First of all, and long before the HTTP server, which would wait for the feeds.
        runtime.stack.push_async_callback(parts[Feeds].stop)
    runtime.endpoints["rest"] = settings.rest_endpoint


def _held(runtime: Runtime, served: dict[str, Handler]) -> dict[str, Handler]:
    """The handlers behind a hold. The process is ready meanwhile: nothing would send calls to it otherwise."""
    hold, journal = Hold(runtime.journal), runtime.journal
    runtime.checks["journal"] = lambda: journal.failure
    runtime.checks["started"] = lambda: None
    runtime.degraded["hold"] = hold.problem
    return hold.before(served)


async def _serve_grpc(
    runtime: Runtime, settings: GatewaySettings, guard: Guard | None, served: dict[str, Handler]
) -> None:
    server = ControllerServer(served, settings.max_calls, guard, channel_options(settings))
    # Reported until the process ends, for the HTTP server is the last to stop.
    runtime.checks["grpc"] = server.problem
    runtime.stack.push_async_callback(server.stop, settings.stop_grace_s)
    settings.grpc_port = await server.start(settings.host, settings.grpc_port, runtime.identity)
    runtime.endpoints[PROTOCOL] = settings.grpc_endpoint


async def _console(
    runtime: Runtime, settings: GatewaySettings, parts: Parts, max_feeds: int, lookback: Lookback | None
) -> Parts:
    """What the routes for operators need beside the parts that all have."""
    journal, clock, reads, store = runtime.journal, runtime.clock, parts[Reads], parts[SegmentStore]
    refusal = why_not(secured=settings.auth_enabled or runtime.identity is not None)
    demonstration = Demonstration(
        lambda: runtime.endpoints.get(PROTOCOL) or grpc_address(reads.cluster()), clock.now_ms, refusal
    )
    runtime.stack.push_async_callback(demonstration.close)
    read = runtime.connections.read_dead_letters
    letters = DeadLetters(read, runtime.producer, settings.partitions, runtime.source, clock, journal.chance)
    watch = ChangeWatch(journal)
    hello = Hello(settings.cluster_name, await version_of_page(settings.page_mode))
    if lookback is None:
        helper = lookback = LookbackHelper(settings.instance)
        runtime.stack.push_async_callback(helper.stop)
    rates = Rates(store, reads.known_stream, clock.now_ms)
    runtime.stack.push_async_callback(rates.stop)
    readers = GroupReaders(parts[GroupStates], store, reads, parts[Worker], clock, lookback)
    stream_groups = StreamGroups(reads, readers)
    runtime.stack.push_async_callback(stream_groups.stop)
    table_sizes = TableSizes(store)
    runtime.stack.push_async_callback(table_sizes.stop)
    partitions = Partitions(runtime.connections.group_progress(), clock)
    runtime.stack.push_async_callback(partitions.stop)
    tally = Tally(journal, watch)
    overview = Overview(journal, tally, letters, clock)
    runtime.stack.push_async_callback(overview.stop)
    rules = Rules.of(settings.scale_cooldown_s, settings.retention_tick_s, settings.retention_pause_s)
    return {
        DeadLetters: letters,
        Statistics: follow_statistics(runtime),
        Demonstration: demonstration,
        Hello: hello,
        Feeds: Feeds(watch, clock, hello, max_feeds),
        Overview: overview,
        LastHour: LastHour(journal, reads, tally, follow_written(runtime), clock),
        Partitions: partitions,
        Lookback: lookback,
        Rates: rates,
        WhatIfs: WhatIfs(rules),
        GroupReaders: readers,
        StreamGroups: stream_groups,
        TableSizes: table_sizes,
        StreamLoads: StreamLoads(rates, stream_groups, parts[Worker], reads.known_stream),
        StoredData: StoredData(store, is_shown=settings.shows_data),
    }


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


def service(**given: Any) -> Service:
    """With the settings of the environment, behind those that are given."""
    settings = settings_of(GatewaySettings, **given)
    apps: list[FastAPI] = []

    def serve(runtime: Runtime) -> FastAPI:
        guard = guard_of(runtime, settings)
        sessions = sessions_of(settings, runtime.tokens)
        apps.append(
            build_app(runtime, settings.max_http_connections, guard, browsers_of(settings), sessions, settings.serves)
        )
        return apps[0]

    name = SERVICE if settings.serves.pravega else CONSOLE
    return Service(
        name, settings, lambda runtime: start(runtime, settings, apps[0]), serve, holds=settings.serves.pravega
    )
