"""The process of the Faust app. It ends with the process that started it, whose end closes standard input."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import threading

import uvloop
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from sluice.kafka.topics import STATISTICS, STATISTICS_WINDOWS
from sluice.kafka_config import clients
from sluice.settings import settings_of
from sluice.telemetry.logs import set_up_logs
from txn_manager.settings import TxnSettings
from txn_manager.statistics.app import run

KAFKA_ANSWERS_S = 2.0
KAFKA_RETRY_S = 0.5


def main() -> None:
    """Status 1 if the app ended by itself: the supervisor starts it anew."""
    settings = settings_of(TxnSettings)
    set_up_logs("txn-manager", f"{settings.instance}/statistics", settings.log_level)
    logging.getLogger("faust.agents.actor").addFilter(_is_no_rebalance)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Faust makes a loop for a thread of its own, too.
    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    with contextlib.suppress(asyncio.CancelledError):
        asyncio.run(_live(settings))


async def _live(settings: TxnSettings) -> None:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    await _wait_for_kafka(settings)
    await run(settings, _alive)


async def _wait_for_kafka(settings: TxnSettings) -> None:
    """Faust would end its app, and print to standard error, if it were started without Kafka."""
    admin = AdminClient(clients.admin(settings.kafka_client()))
    while not await asyncio.to_thread(_has_topics, admin):
        _alive()
        await asyncio.sleep(KAFKA_RETRY_S)


def _has_topics(admin: AdminClient) -> bool:
    try:
        present: dict[str, object] = admin.list_topics(timeout=KAFKA_ANSWERS_S).topics
    except KafkaException:
        return False
    return {STATISTICS.name, STATISTICS_WINDOWS.name} <= present.keys()


def _alive() -> None:
    """A heartbeat for the process that started this one."""
    sys.stdout.write("\n")
    sys.stdout.flush()


def _is_no_rebalance(record: logging.LogRecord) -> bool:
    """Faust calls it a crash of the agent, at level error, when it begins anew after a rebalance."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


def _end_with_parent() -> None:
    while os.read(0, 1):
        pass
    os._exit(0)


if __name__ == "__main__":
    main()
