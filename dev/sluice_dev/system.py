"""The whole system in one process: the production services over the twins of what they stand on, in real time.

Each service is a Runtime of its own with a journal of its own, as it is in a process of its own; they meet in the
broker in memory. Concurrency: one event loop for all.
"""

import asyncio
import gc
import logging
import random
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from api_gateway.app import build_app
from api_gateway.edge.requests import Requests
from api_gateway.edge.security.browsers import browsers_of
from api_gateway.main import guard_of, sessions_of
from api_gateway.main import start as start_gateway
from api_gateway.settings import GatewaySettings
from cluster_manager.main import ClusterManager
from cluster_manager.settings import ClusterManagerSettings
from sluice.addresses import EVERYWHERE, LOOPBACK, bare
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.host import Host
from sluice.domain.scope.commands import CreateScope
from sluice.domain.status import Status
from sluice.domain.stream.commands import CreateStream
from sluice.exceptions import CannotStartError
from sluice.kafka.topics import TOPICS
from sluice.lookback.memory import MemoryLookback
from sluice.memory.broker import MemoryBroker
from sluice.memory.connections import MemoryConnections, MemoryGroups
from sluice.pravega.memory import InMemorySegmentStore
from sluice.pravega.memory_server import MemoryStoreServer
from sluice.runtime import COLLECTOR_THRESHOLDS, SWITCH_S, Runtime, Start, work
from sluice.settings import ServiceSettings, settings_of
from sluice.telemetry.health import HttpServer, Problems, problems
from sluice.telemetry.http_connections import HttpBounds
from sluice_dev import security
from sluice_dev.addresses import Addresses
from sluice_dev.faults import Faults
from sluice_dev.load_reports import LoadReports
from sluice_dev.nodes import MemoryNodes
from sluice_dev.options import HOST, DevOptions, NotMadeError
from stream_workflows.main import start as start_workflows
from stream_workflows.settings import WorkflowSettings
from txn_manager.main import start as start_transactions
from txn_manager.settings import TxnSettings
from txn_manager.wheel.memory_redis import MemoryRedis, MemoryRedisAccess

log = logging.getLogger(__name__)

PARTITIONS = 4
LOOK_S = 0.01
REPORT_S = 2.0
S = TypeVar("S", bound=ServiceSettings)

UNUSED = "127.0.0.1:1"
"""Where nothing listens: no other system is looked for."""


class DevSystem:
    """Call `start` before anything else, and `stop` at the end."""

    def __init__(self, options: DevOptions) -> None:
        self.options = options
        self.runtimes: list[Runtime] = []
        loop = asyncio.get_running_loop()
        began_ms = int((time.time() - loop.time()) * 1000)
        counts = {topic.name: topic.partitions for topic in TOPICS if topic.partitions is not None}
        self.broker = MemoryBroker(PARTITIONS, random.SystemRandom(), began_ms=began_ms, counts=counts)
        self.store = InMemorySegmentStore(clock_ms=self.broker.now_ms)
        self.store_server = MemoryStoreServer(self.store)
        self._groups = MemoryGroups(self.broker)
        self._redis = MemoryRedis(self.broker.random)
        self._stack = AsyncExitStack()
        self._works: list[asyncio.Task[None]] = []
        self._requests: Requests | None = None
        self._security: Path | None = None

    async def start(self) -> None:
        """Return when all is ready. Raises OSError if a port is taken, CannotStartError, NotMadeError."""
        gc.set_threshold(*COLLECTOR_THRESHOLDS)
        sys.setswitchinterval(SWITCH_S)
        options = self.options
        if not options.published and bare(options.host) in ("0.0.0.0", EVERYWHERE):
            raise CannotStartError(f"no client can come to {options.host}: say with --published where they come to")
        self._works.append(asyncio.get_running_loop().create_task(self._report_problems(), name="problems"))
        if options.secure:
            self._security = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="sluice-dev-")))
            security.make(self._security, bare(self._published))
        tls, verifier = security.store_tls(self._security), security.store_verifier(self._security)
        await self.store_server.start(options.host, options.store_port, tls, verifier)
        self._stack.push_async_callback(self.store_server.stop)
        self._begin("cluster-manager", ClusterManagerSettings, self._start_cluster_manager, settle_s=0)
        # The others would find no store until the containers have one, and try again.
        await self._until_ready()
        self._begin(
            "stream-workflows",
            WorkflowSettings,
            start_workflows,
            decides_policies=True,
            scale_cooldown_s=options.cooldown_s,
        )
        self._begin("txn-manager", TxnSettings, self._start_transactions)
        self._gateway = self._begin(
            "api-gateway",
            GatewaySettings,
            self._start_gateway,
            grpc_port=options.grpc_port,
            health_port=options.rest_port,
            grpc_published_host=self._published,
            scale_cooldown_s=options.cooldown_s,
            **security.gateway_settings(self._security),
        )
        await self._until_ready()
        reports = LoadReports(self.store, self.broker, options.load_interval_s)
        self._works.append(asyncio.get_running_loop().create_task(reports.run(), name="load reports"))
        await self._make()
        if options.failing or options.slow_s or options.moving_s:
            self.store.fault = Faults(self.broker.random, self._gateway.container_count, options)

    async def stop(self) -> None:
        for one in reversed(self._works):
            one.cancel()
            await asyncio.gather(one, return_exceptions=True)
        await self._stack.aclose()

    async def failed(self) -> None:
        """Return, by raising what it was, once a service has ended by itself."""
        done, _ = await asyncio.wait(self._works, return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.result()

    @property
    def addresses(self) -> Addresses:
        """Where clients and people find it."""
        scheme, folder = "https" if self.options.secure else "http", self._security
        return Addresses(
            self._gateway.grpc_endpoint,
            f"{scheme}://{self._gateway.rest_endpoint}",
            str(self._store_host),
            security.authority(folder),
            security.passwords(folder),
        )

    @property
    def _published(self) -> str:
        """The host that clients are given. Those written in Rust find no addresses in certificates."""
        options = self.options
        own = LOOPBACK if options.secure and options.host == HOST else options.host
        return options.published or own

    @property
    def _store_host(self) -> Host:
        """Where clients find the segment store."""
        return Host(self._published, self.store_server.host.port)

    def problems(self) -> Problems:
        """What is not ready, by service and check."""
        found = ((r.name, name, wrong) for r in self.runtimes for name, wrong in problems(r.checks).items())
        return {f"{service}: {name}": wrong for service, name, wrong in found}

    async def _report_problems(self) -> None:
        """A start that does not come to its end says what it waits for, and what ends later does not do so unseen."""
        reported: set[tuple[str, str]] = set()
        while True:
            await asyncio.sleep(REPORT_S)
            found = set(self.problems().items())
            for name, wrong in sorted(found - reported):
                log.warning("not ready", extra={"check": name, "problem": wrong})
            reported = found

    # The services.

    def _begin(
        self, name: str, kind: type[S], start: Callable[[Runtime, S], Coroutine[Any, Any, None]], **more: Any
    ) -> S:
        """Members of the cluster differ by their instance alone."""
        settings = settings_of(
            kind,
            host=self.options.host,
            instance=f"{name}-dev",
            partitions=PARTITIONS,
            kafka_bootstrap=UNUSED,
            zookeeper=UNUSED,
            archive="",
            **{**security.service_settings(self._security), **more},
        )
        runtime = Runtime(name, settings, MemoryConnections(self._groups, settings.instance))
        runtime.checks["started"] = lambda: "starting"
        self.runtimes.append(runtime)
        task = asyncio.get_running_loop().create_task(_live(runtime, lambda it: start(it, settings)), name=name)
        self._works.append(task)
        return settings

    async def _start_cluster_manager(self, runtime: Runtime, settings: ClusterManagerSettings) -> None:
        ClusterManager(runtime, settings, partial(MemoryNodes, (self._store_host,))).start()

    async def _start_transactions(self, runtime: Runtime, settings: TxnSettings) -> None:
        service = await start_transactions(runtime, settings, MemoryRedisAccess(self._redis))
        runtime.stack.push_async_callback(service.stop)

    async def _start_gateway(self, runtime: Runtime, settings: GatewaySettings) -> None:
        guard, sessions = guard_of(runtime, settings), sessions_of(settings, runtime.tokens)
        connections = settings.max_http_connections
        app = build_app(runtime, connections, guard, browsers_of(settings), sessions, settings.serves)
        bounds = HttpBounds(connections, settings.max_header_bytes)
        server = HttpServer(app, settings.host, *settings.http_ports, identity=runtime.identity, bounds=bounds)
        settings.health_port = await server.start()
        runtime.stack.push_async_callback(server.stop)
        await start_gateway(runtime, settings, app, MemoryLookback(self.broker))
        self._requests = app.state.parts[Requests]

    async def _until_ready(self) -> None:
        """Checks tell no one when they pass."""
        while self.problems():
            await asyncio.wait(self._works, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
            for one in self._works:
                if one.done():
                    one.result()

    async def _make(self) -> None:
        assert self._requests is not None, "the gateway has started"
        options = self.options
        for scope in dict.fromkeys((*options.scopes, *(stream.scope for stream in options.streams))):
            await self._done(self._requests, CreateScope(scope))
        for stream in options.streams:
            config = StreamConfig(ScalingPolicy(min_segments=stream.segments))
            await self._done(self._requests, CreateStream(stream.scope, stream.name, config))

    async def _done(self, requests: Requests, command: CreateScope | CreateStream) -> None:
        reply = await requests.submit(command)
        if reply.status != Status.SUCCESS:
            raise NotMadeError(f"{command.key}: {reply.status} {reply.reason}".strip())


async def _live(runtime: Runtime, start: Start) -> None:
    async with runtime.stack:
        await work(start, False, runtime)
