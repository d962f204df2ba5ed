"""The programs that print the results and check them: of a stream, and of the keyed output."""

import asyncio
import sys
from functools import partial

import msgspec
from redis.asyncio import Redis

from at_least_once.groups import whole_stream
from at_least_once.idempotent import KeyedStore
from at_least_once.patience import patiently
from at_least_once.settings import IdempotentSinkSettings, SinkSettings
from at_least_once.streams import ensure_stream
from at_least_once.tally import Tally
from sluice_client import Client, Event

_POLL_S = 0.05


async def run_sink(client: Client, settings: SinkSettings, stop: asyncio.Event) -> int:
    """Prints and counts until it is stopped, all that is expected came, the time is up, or the stream ends.

    Then it prints a summary. The exit code is 1 if events are missing or bad.
    """
    await ensure_stream(client, settings.scope, settings.input, settings.scaling)
    tally, now = Tally(settings.expect), asyncio.get_running_loop().time
    deadline, last_came = now() + settings.deadline_s, now()
    async with whole_stream(client, settings.scope, settings.input) as reader:
        while not stop.is_set():
            item = await reader.next(_POLL_S)
            if isinstance(item, Event):
                said = tally.add(item.data)
                if not settings.quiet:
                    print(said)
                last_came = now()
                continue
            sys.stdout.flush()
            late, quiet = now() > deadline, now() > last_came + settings.quiet_s
            if reader.at_end_of_data or (settings.expect and (late or (tally.complete and quiet))):
                break
    return _conclude(tally)


async def run_redis_sink(_client: Client, settings: IdempotentSinkSettings, stop: asyncio.Event) -> int:
    """Waits for the keyed results, prints a summary of them. The exit code is 1 if any is missing, bad or repeated.

    Raises RedisError when the patience is over.
    """
    async with Redis.from_url(settings.redis_url) as redis:
        store = KeyedStore(redis, settings.scope, settings.output)
        tally, now = Tally(settings.expect), asyncio.get_running_loop().time
        deadline = now() + settings.deadline_s
        while True:
            results = await patiently(partial(store.results, tally.events), settings.patience_s)
            for data in results:
                tally.add(data)
            if stop.is_set() or now() > deadline or (tally.complete and not results):
                break
            if not results:
                await asyncio.sleep(_POLL_S)
        refused = await patiently(store.refused, settings.patience_s)
        print(f"results that came again and were refused: {refused}")
    return _conclude(tally) or int(tally.summary().repeated > 0)


def _conclude(tally: Tally) -> int:
    summary = tally.summary()
    print(msgspec.json.encode(summary).decode(), flush=True)
    return int(bool(summary.missing or summary.bad))
