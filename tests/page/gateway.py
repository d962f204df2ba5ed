"""The gateway over services in memory, served by the real HTTP server: what the page's tests and its preview stand on.

Workflows are run by the real service on segment stores in memory. One of the containers is silent, so what needs it
fails and is tried again, until `heal`. Belongs to one event loop; `in_thread` gives it a thread of its own.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, TypeVar
from uuid import UUID, uuid4

import httpx
from page import sample_data
from page.sample_data import ORDERS, SCRIPT, Size
from page.sample_log import DatedBroker, SampleLog
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send
from support import group_state
from support.loops import LoopInThread
from support.ports import free_port
from support.wait import SOON_S
from unit.gateway.rest.world import World
from unit.gateway.system import CONTAINERS, PARTITIONS

import api_gateway
from api_gateway.console.demonstration import Demonstration
from api_gateway.console.feed.feeds import Feeds
from api_gateway.edge.reads import Reads
from api_gateway.edge.security.browsers import Browsers, Calls
from api_gateway.edge.security.guard import Guard
from api_gateway.edge.security.sessions import Sessions
from api_gateway.settings import PageMode
from sluice.domain.cluster.commands import Heartbeat
from sluice.domain.cluster.decide import decide_heartbeat
from sluice.domain.cluster.state import CLUSTER
from sluice.domain.commands import Command
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.decision import Context, Decision, Reader
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.names import READER_GROUP_PREFIX, STREAMS
from sluice.domain.scope.commands import CreateScope, DeleteScopeRecursive
from sluice.domain.segment import segment_name
from sluice.domain.stream.commands import CreateStream, ScaleStream, SealStream
from sluice.domain.stream.state import Stream, StreamState
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import JOURNAL, REQUESTS_CLUSTER, REQUESTS_STREAMS, topic_of
from sluice.pravega.failure import ConnectionFailure, Failure
from sluice.pravega.memory import MemorySegment, Moment
from sluice.pravega.routing import container_of
from sluice.telemetry.health import HttpServer

SILENT = 2
"""The container that does not answer, until it is healed."""

EVENT_COUNT = UUID("80000000-0000-0000-0000-000000000001")
_BEAT_S = 5.0
_TRAFFIC_S = 0.5

T = TypeVar("T")

Past = Callable[[SampleLog, int], None]


def _nothing(_log: SampleLog, _now: int) -> None: ...


class PageGateway:
    """Call `start` before anything else, and `stop` at the end. Without a `size` the system is empty.

    With `fresh_files` the page's files are read with each request, so that who works on them sees a change. With a
    `guard` browsers have sessions. `past` may write more into the log, up to the time (epoch ms) that it is given.
    """

    def __init__(
        self,
        size: Size | None = None,
        port: int = 0,
        mode: PageMode = PageMode.ON,
        *,
        fresh_files: bool = False,
        guard: Guard | None = None,
        past: Past = _nothing,
        demonstration: Demonstration | None = None,
    ) -> None:
        self.broker = DatedBroker(PARTITIONS)
        self.silent = {SILENT} if size is not None else set[int]()
        self.is_writing = size is not None
        self._size = size
        log, now = SampleLog(self.broker), self.broker.now_ms()
        if size is not None:
            sample_data.write(log, now, size, CONTAINERS)
        else:
            sample_data.write_cluster(log, now, CONTAINERS)
        past(log, now)
        self.broker.past_ms = None
        browsers = Browsers(must_know=Calls.ALL, mode=mode)
        sessions = Sessions(lambda: b"a key", time.time) if guard is not None else None
        self.world = World(1_000, guard, browsers, sessions, self.broker)
        if demonstration is not None:
            self.world.demonstration = demonstration
        self._reads = Reads(self.world.runtime.journal)
        self.port = port or free_port()
        app: Any = FreshFiles(self.world.app, self) if fresh_files else self.world.app
        self._server = HttpServer(app, "127.0.0.1", self.port)
        self._tasks: list[asyncio.Task[None]] = []
        self._sent = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"{self.origin}/ui/"

    async def start(self) -> None:
        """Serve. Raises OSError if the port is taken."""
        await self.world.start()
        # Not before the streams that the services keep for themselves are there.
        self.world.store.fault = self._fault
        if self._size is not None:
            self._fill_stores()
            for name in ("billing", "audit"):
                await self._write_group(GroupId(ORDERS.scope, name))
            self._fail_workflows()
            self._write_letters()
        await self._server.start()
        self._tasks = [asyncio.create_task(work) for work in (self._beat(), self._write())]

    async def stop(self) -> None:
        # As in the service: feeds end before the server, which would wait for them.
        await self.world.parts[Feeds].stop()
        await self._server.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.world.stop()

    def heal(self) -> None:
        """All containers answer from now on."""
        self.silent.clear()

    def request(self, command: Command) -> str:
        """Send a command as another gateway would, and wait for nothing; the request's id."""
        self._sent += 1
        runtime = self.world.runtime
        request = runtime.sender.request(f"other-gateway-{self._sent}", command, "amy")
        self.broker.land(topic_of(command).name, command.key, encode_request(request))
        return request.id

    def records_of(self, key: str) -> int:
        """How many records of the journal and requests have the key."""
        logs = [log for topic in (JOURNAL, REQUESTS_STREAMS) for log in self.broker.logs(topic.name)]
        return sum(message.key() == key.encode() for log in logs for message in log)

    # What is behind the gateway.

    def _fault(self, moment: Moment, _request: str, segment: str) -> None:
        if moment == "before" and segment and container_of(segment, CONTAINERS) in self.silent:
            raise ConnectionFailure(Failure.SILENT)

    def _fill_stores(self) -> None:
        """The active segments of all streams exist; those that were truncated begin where the head is."""
        segments = self.world.store.segments
        for view in self.world.runtime.journal.views():
            for _, stream in view.aggregates(STREAMS):
                if isinstance(stream, Stream):
                    for id in stream.active_epoch.segments:
                        begins = max(0, stream.cut.get(id, 0))
                        data = b"" if stream.id.name.startswith(READER_GROUP_PREFIX) else bytes(64)
                        segment = MemorySegment(
                            start_offset=begins, stored=bytearray(data), sealed=stream.state is StreamState.SEALED
                        )
                        segments[segment_name(*stream.id, id)] = segment

    async def _write_group(self, id: GroupId) -> None:
        """What two readers of a group of `demo/orders` have written: each has its share of all segments but one."""
        group, read = self._reads.known_group(id), self._reads.known_stream(ORDERS)
        assert group is not None and read is not None, "the sample data have both"
        names = [segment_name(*ORDERS, segment) for segment in read.active_epoch.segments]
        config = group_state.config([str(ORDERS)], group.config.id, group.config.generation)
        shares = {reader: names[:-1][number::2] for number, reader in enumerate(("reader-a", "reader-b"))}
        changes = [group_state.add_reader(reader) for reader in shares]
        changes += [group_state.acquire(reader, name) for reader, share in shares.items() for name in share]
        changes += [group_state.last_read(reader, dict.fromkeys(share, 32)) for reader, share in shares.items()]
        state = segment_name(id.scope, f"{READER_GROUP_PREFIX}{id.name}", 0)
        for entry in (group_state.initial(config, names), group_state.updates(*changes)):
            await self.world.store.append(state, uuid4(), entry)

    def _fail_workflows(self) -> None:
        """A dozen workflows that need the silent container, and some that wait for those."""
        self.request(CreateScope("old"))
        for name in _names_in(SILENT, "orders-eu", 6):
            self.request(CreateStream("shop", name, StreamConfig()))
        (gone,) = _names_in(SILENT, "left-over", 1, "old")
        self.request(CreateStream("old", gone, StreamConfig()))
        self.request(DeleteScopeRecursive("old"))
        self.request(CreateStream("iot", "archive", StreamConfig(ScalingPolicy(min_segments=16))))
        self.request(SealStream("iot", "sensors"))
        alarms = {0: (0.0, 0.5), 1: (0.5, 1.0)}
        splits = tuple((low + part / 16, low + (part + 1) / 16) for low, _ in alarms.values() for part in range(8))
        self.request(ScaleStream("iot", "alarms", tuple(alarms), splits, self.broker.now_ms()))

    def _write_letters(self) -> None:
        letter = self.world.letters.letter
        for number in range(6):
            letter(
                "shop/carts", b'{"type":"ScaleStream","number":%d}' % number, "sluice.requests.streams", "no such type"
            )
        letter("demo/orders", b"\x00\x01\xff not JSON", "sluice.scale", "not a record of this topic")
        letter("demo/orders", f'{{"html":"{SCRIPT}"}}'.encode(), "sluice.commit", SCRIPT)
        letter("demo/large", b'{"filler":"' + b"x" * 1_000_000 + b'"}', "sluice.abort", "too large")

    async def _beat(self) -> None:
        """Every member sends its heartbeats; those of txn-manager get no answer from the silent container."""
        while True:
            cluster = self._reads.cluster()
            for member in list(cluster.members.values()):
                unresponsive = tuple(self.silent) if member.service == "txn-manager" else ()
                beat = Heartbeat(
                    member.service, member.instance, dict(member.endpoints), member.since, unresponsive=unresponsive
                )
                await self.world.runtime.journal.propose(CLUSTER, partial(_decide_heartbeat, beat))
                request = Request(
                    id=f"beat-{member.instance}", at=self.broker.now_ms(), by=member.instance, command=beat
                )
                message = self.broker.land(REQUESTS_CLUSTER.name, beat.key, encode_request(request))
                self.world.last_heartbeats.observe([message])
            await asyncio.sleep(_BEAT_S)

    async def _write(self) -> None:
        """A writer on `demo/orders`, so that its segments have rates."""
        random = Random(5)
        while True:
            await asyncio.sleep(_TRAFFIC_S)
            stream = self._reads.known_stream(ORDERS) if self.is_writing else None
            for number, id in enumerate(stream.active_epoch.segments if stream is not None else ()):
                segment = self.world.store.segments.get(segment_name(*ORDERS, id))
                if segment is not None and not segment.sealed:
                    events = random.randrange(10, 40) * (1 + number % 3)
                    segment.data += bytes(events * 8)
                    segment.attributes[EVENT_COUNT] = segment.attributes.get(EVENT_COUNT, 0) + events


def _decide_heartbeat(beat: Heartbeat, reader: Reader, context: Context) -> Decision:
    return decide_heartbeat(reader, beat, context)


class FreshFiles:
    """ASGI: the page's folder as it is at the moment under /ui/, everything else from the application.

    A POST of /sample/heal has the silent container answer from then on.
    """

    def __init__(self, app: ASGIApp, gateway: PageGateway) -> None:
        self._app = app
        self._gateway = gateway
        self._files = StaticFiles(
            directory=Path(api_gateway.__file__).parent / "console" / "page", check_dir=False, html=True
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if path == "/sample/heal" and scope["method"] == "POST":
            self._gateway.heal()
            await Response(status_code=204)(scope, receive, send)
        elif path == "/ui":
            await RedirectResponse("ui/")(scope, receive, send)
        elif path.startswith("/ui/"):
            within = path.removeprefix("/ui/").removeprefix("page/")
            await self._files({**scope, "path": f"/{within}", "root_path": ""}, receive, send)
        else:
            await self._app(scope, receive, send)


class InThread:
    """A gateway on an event loop in a thread of its own, for callers that block."""

    def __init__(self, loop: LoopInThread, gateway: PageGateway) -> None:
        self._loop = loop
        self.gateway = gateway

    @property
    def url(self) -> str:
        return self.gateway.url

    @property
    def origin(self) -> str:
        return self.gateway.origin

    def call(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """What a program is answered, as late as a slow machine may; `path` is what follows `/sluice/v1/`."""
        return httpx.request(method, f"{self.origin}/sluice/v1/{path}", json=body, timeout=SOON_S)

    def do(self, action: Callable[[PageGateway], T]) -> T:
        """What the action returns on the loop."""

        async def act() -> T:
            return action(self.gateway)

        return self._loop.run(act())

    def run(self, action: Callable[[PageGateway], Any]) -> Any:
        """What the coroutine that the action returns comes to."""

        async def act() -> Any:
            return await action(self.gateway)

        return self._loop.run(act())


@contextmanager
def in_thread(
    size: Size | None = None,
    mode: PageMode = PageMode.ON,
    guard: Guard | None = None,
    past: Past = _nothing,
    demonstration: Demonstration | None = None,
) -> Iterator[InThread]:
    """A gateway that is served inside."""

    async def begin() -> PageGateway:
        gateway = PageGateway(size, mode=mode, guard=guard, past=past, demonstration=demonstration)
        await gateway.start()
        return gateway

    with LoopInThread("page-gateway") as loop:
        gateway = loop.run(begin(), 280)
        try:
            yield InThread(loop, gateway)
        finally:
            loop.run(gateway.stop())


def _names_in(container: int, prefix: str, count: int, scope: str = "shop") -> list[str]:
    """Names of streams of one segment that is in the container."""
    names = (f"{prefix}-{number}" for number in range(10_000))
    found = (n for n in names if container_of(segment_name(*StreamId(scope, n), 0), CONTAINERS) == container)
    return [name for name, _ in zip(found, range(count), strict=False)]
