"""What Prometheus reads: gauges that look at something larger are brought up to date first, on the event loop.

Each of them is a group under a name; a later one of the same name replaces it. A group has to be quick: it runs
between two requests. Writing the text takes longer and touches nothing that belongs to the loop, so a thread does it.
"""

import asyncio
import logging
from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.responses import Response

from sluice.telemetry.metrics import SCRAPE_FAILURES

log = logging.getLogger(__name__)

_groups: dict[str, Callable[[], None]] = {}


def on_scrape(group: str, refresh: Callable[[], None]) -> None:
    """Have `refresh()` called on the loop before each scrape. One that fails costs its own gauges, not the scrape."""
    _groups[group] = refresh


def refresh_all() -> None:
    """Bring the gauges of all groups up to date."""
    for group, refresh in list(_groups.items()):
        try:
            refresh()
        except Exception:
            SCRAPE_FAILURES.labels(group).inc()
            log.exception("gauges not brought up to date", extra={"group": group})


async def exposition() -> Response:
    """All metrics of the process, as Prometheus' text."""
    refresh_all()
    return Response(await asyncio.to_thread(generate_latest), media_type=CONTENT_TYPE_LATEST)
