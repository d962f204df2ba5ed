"""Records that are sent to us by HTTP, into the stream: POST or PUT, answered when they are stored. One node at a time.

204 says that all records of the body are in the stream. After any other answer, or none, the sender sends it again, and
a part of it may be there twice: **at least once**, as good as the sender is. Neither TLS nor passwords: a proxy before
it has those, and finds by trying which node listens.

Concurrency: belongs to one event loop; as many requests at a time as come, each held until it is stored.
"""

import asyncio

from aiohttp import web

from distributed_ingest.feed import Scene
from distributed_ingest.outlet import BATCH_BYTES
from distributed_ingest.records import MAX_EVENT_BYTES, Event, records_of
from distributed_ingest.sink import SinkError, StreamEndedError
from sluice import addresses
from sluice_coordination import LockLostError, TaskContext

MAX_BODY_BYTES = 16 * 1024 * 1024
RETRY_AFTER_S = 5
ENDS_S = 5.0


async def receive(scene: Scene, context: TaskContext, host: str, port: int) -> None:
    """Answer until stopped. Raises OSError."""

    async def accept(request: web.Request) -> web.Response:
        return await _accept(scene, context, request)

    app = web.Application(client_max_size=MAX_BODY_BYTES)
    app.router.add_route("POST", "/{path:.*}", accept)
    app.router.add_route("PUT", "/{path:.*}", accept)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=ENDS_S)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        own = runner.addresses[0][1]
        scene.tell(f"listening on {addresses.address_of(host, own)} for HTTP")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def _accept(scene: Scene, context: TaskContext, request: web.Request) -> web.Response:
    body, origin, outlet = await request.read(), request.remote or "unknown", scene.outlet
    try:
        records = records_of(body, scene.job.definition.records)
    except ValueError as error:
        return web.Response(status=400, text=f"the body is {error}\n")
    if any(len(record) > MAX_EVENT_BYTES for record in records):
        return web.Response(status=413, text=f"a record has more than {MAX_EVENT_BYTES} bytes\n")
    try:
        batch, size = list[Event](), 0
        for record in records:
            batch.append(outlet.event(record, origin))
            size += len(record)
            if size >= BATCH_BYTES:
                await outlet.deliver(context, origin, batch)
                batch, size = [], 0
        await outlet.deliver(context, origin, batch)
    except (SinkError, StreamEndedError, LockLostError) as error:
        return web.Response(status=503, text=f"{error}\n", headers={"Retry-After": str(RETRY_AFTER_S)})
    return web.Response(status=204)
