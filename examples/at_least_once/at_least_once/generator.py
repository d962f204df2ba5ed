"""The program that writes numbered events with checksums at a steady rate."""

import asyncio
from secrets import token_hex

from at_least_once.events import Event
from at_least_once.settings import GeneratorSettings
from at_least_once.streams import ensure_stream
from sluice_client import Client

_TICK_S = 0.05
_LARGEST_BURST = 1000


async def run_generator(client: Client, settings: GeneratorSettings, stop: asyncio.Event) -> int:
    """Writes until it is stopped or has written all. An event that is counted is stored."""
    await ensure_stream(client, settings.scope, settings.output, settings.scaling)
    writer = client.event_writer(settings.scope, settings.output)
    source = settings.source or f"generator-{token_hex(3)}"
    now = asyncio.get_running_loop().time
    began, written = now(), 0
    while not stop.is_set() and not (settings.count and written >= settings.count):
        due = min(int((now() - began) * settings.rate) + 1, written + _LARGEST_BURST)
        due = min(due, settings.count) if settings.count else due
        for number in range(settings.first + written, settings.first + due):
            key = f"{source}-{number % settings.keys}"
            writer.add(key, Event.of(source, number, key, f"event {number}").encode())
        await writer.flush()
        written = max(written, due)
        await asyncio.sleep(_TICK_S)
    print(f"{source}: {written} events, from {settings.first} on", flush=True)
    return 0
