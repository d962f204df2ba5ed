"""Looks whether the topics have the settings that the system relies on: someone else may have made or changed them.

A journal that Kafka removes records from by age shows nothing while services run, for they have folded them. Nor does
one whose records are acknowledged when one replica alone has them, until that one is lost.
"""

import asyncio
import logging
from functools import partial

from confluent_kafka import KafkaException

from sluice.exceptions import in_words
from sluice.kafka.topics import present_settings, too_few_in_sync, unfit_settings
from sluice.runtime import Runtime

log = logging.getLogger(__name__)

LOOK_S = 600.0
AGAIN_S = 60.0
"""After a look that failed, or found something."""


async def watch_topic_settings(runtime: Runtime) -> None:
    """Look now and then.

    The service is not ready while a topic is missing or has a setting that may not be, and degraded while one
    acknowledges what fewer replicas have than the deployment says.
    """
    client, replication = runtime.settings.kafka_client(), runtime.settings.kafka_replication
    while True:
        try:
            present = await asyncio.to_thread(present_settings, client)
        except KafkaException as error:
            log.warning("topic settings not read", extra={"error": in_words(error)})
            await asyncio.sleep(AGAIN_S)
            continue
        unfit, few = "; ".join(unfit_settings(present)), too_few_in_sync(present, replication)
        runtime.checks["topic settings"] = partial(_problem, unfit)
        runtime.degraded["in-sync replicas"] = partial(_problem, few)
        await asyncio.sleep(AGAIN_S if unfit or few else LOOK_S)


def _problem(found: str) -> str | None:
    return found or None
