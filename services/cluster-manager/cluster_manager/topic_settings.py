"""Looks whether the topics have the settings that the system relies on: someone else may have made or changed them.

A journal that Kafka removes records from by age shows nothing while services run, for they have folded them.
"""

import asyncio
import logging
from functools import partial

from confluent_kafka import KafkaException

from sluice.kafka.topics import unfit_settings
from sluice.kafka_config import clients
from sluice.runtime import Runtime

log = logging.getLogger(__name__)

LOOK_S = 600.0
AGAIN_S = 60.0
"""After a look that failed."""


async def watch_topic_settings(runtime: Runtime) -> None:
    """Look now and then; the service is not ready while a setting is one that may not be."""
    client = runtime.settings.kafka_client()
    while True:
        try:
            found = await asyncio.to_thread(unfit_settings, client)
        except KafkaException as error:
            log.warning("topic settings not read", extra={"error": clients.reason_of(error)})
            await asyncio.sleep(AGAIN_S)
        else:
            runtime.checks["topic settings"] = partial(_problem, found)
            await asyncio.sleep(LOOK_S)


def _problem(found: list[str]) -> str | None:
    return "; ".join(found) or None
