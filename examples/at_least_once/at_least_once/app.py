"""The program of one worker: reads a stream through a reader group, applies a function, and stores the results."""

import asyncio
from contextlib import AsyncExitStack

from at_least_once.functions import load
from at_least_once.idempotent import RedisOutput
from at_least_once.output import Output, StreamOutput
from at_least_once.processor import FunctionFailed
from at_least_once.settings import AppSettings
from at_least_once.worker import Worker
from sluice_client import Client


async def run_app(client: Client, settings: AppSettings, stop: asyncio.Event) -> int:
    """Works until it is stopped, and says how much it has done; the exit code is 1 if the function failed.

    Raises NoSuchFunction, and an ExceptionGroup of what lasted longer than the patience, or is no event.
    """
    function = load(settings.function)
    async with AsyncExitStack() as stack:
        output: Output
        if settings.output_to == "redis":
            output = await stack.enter_async_context(
                RedisOutput.open(settings.redis_url, settings.scope, settings.output, settings.patience_s)
            )
        else:
            output = await StreamOutput.open(client, settings)
        worker = await Worker.open(client, function, output, settings)
        code = 0
        try:
            await worker.run(stop)
        except* FunctionFailed:
            # The processor has logged it.
            code = 1
        print(f"{settings.name}: {worker.done} events", flush=True)
    return code
