"""Telemetry of the process itself: what it is, and whether its event loop keeps up."""

import asyncio
from importlib.metadata import version

from sluice.telemetry.metrics import EVENT_LOOP_LAG, PROCESS

TICK_S = 0.5

VERSION = version("sluice-streams")
"""That of all of Sluice: its distributions are released together."""


def describe_process(service: str, instance: str) -> None:
    """Say which service this is; not by the labels `service` and `instance`, which Prometheus sets itself."""
    PROCESS.info({"name": service, "member": instance, "version": VERSION})


async def watch_event_loop() -> None:
    """Look for ever how late the loop is; it is when something keeps it for long, or the machine is short of CPU."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + TICK_S
        await asyncio.sleep(TICK_S)
        EVENT_LOOP_LAG.observe(max(0.0, loop.time() - due))
