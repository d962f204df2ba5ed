"""The program that starts several workers on this machine, each a process of its own that needs no other."""

import asyncio
import logging
import os
import signal
import sys

from at_least_once.settings import AppSettings, StarterSettings
from sluice_client import Client

_log = logging.getLogger(__name__)


async def run_workers(_client: Client, settings: StarterSettings, stop: asyncio.Event) -> int:
    """Runs workers until it is stopped, then has them stop; one that ends before is reported and not started again.

    The exit code is 1 if any ended otherwise than by itself.
    """
    environment = {**os.environ, **as_environment(settings)}
    workers = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "at_least_once", "app", "--name", f"{settings.name}-{number}"),
            env=environment,
        )
        for number in range(1, settings.workers + 1)
    ]
    waits = [asyncio.create_task(_report(worker)) for worker in workers]
    stopping = asyncio.create_task(stop.wait())
    done, _ = await asyncio.wait((stopping, asyncio.gather(*waits)), return_when=asyncio.FIRST_COMPLETED)
    if stopping in done:
        for worker in workers:
            if worker.returncode is None:
                worker.send_signal(signal.SIGTERM)
    stopping.cancel()
    return int(any(await asyncio.gather(*waits)))


async def _report(worker: asyncio.subprocess.Process) -> int:
    code = await worker.wait()
    if code == -signal.SIGTERM:
        # It was stopped before it had begun.
        return 0
    if code:
        _log.error("the worker with process id %d ended with %d", worker.pid, code)
    return code


def as_environment(settings: AppSettings) -> dict[str, str]:
    """The settings as the workers read them."""
    values = settings.model_dump(include=set(AppSettings.model_fields) - {"name"})
    return {f"ALO_{field.upper()}": str(value) for field, value in values.items()}
