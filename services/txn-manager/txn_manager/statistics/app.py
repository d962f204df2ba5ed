"""The Faust app: folds reports of `sluice.statistics` into a table of windows, whose change log readers follow.

The table's change log is `sluice.statistics.windows`: what Faust needs to find its table again after a restart is what
the gateway answers from, so nothing is published beside it. Each record has the key of a window, or of a partition's
mark. The table is a plain one, with the window in the key. Faust's own windowed tables keep an entry for every change
until its window expires, and so grow with the load, not with the number of windows.

After a crash reports are read a second time. Each window says the offset of the last report in it, and one that does
not stand behind that is not added to it again.
"""

import asyncio
import threading
from collections.abc import Callable
from random import sample
from typing import Any

import faust
import msgspec
from faust.auth import Credentials, OAuthCredentials, SASLCredentials, SSLCredentials
from mode.threads import WorkerThread

from sluice.insight.statistics import Folded, WindowStatistics, progress_key
from sluice.kafka.headers import cloud_event_headers
from sluice.kafka.topics import MAX_RECORD_BYTES, STATISTICS, STATISTICS_GROUP, STATISTICS_WINDOWS
from sluice.kafka_config.conf import Conf
from sluice.kafka_config.python import python_security
from sluice.kafka_config.security import TokenLogin
from txn_manager.settings import TxnSettings
from txn_manager.statistics.token_provider import TokenProvider
from txn_manager.statistics.windows import Windows

SIGN_OF_LIFE_S = 5.0
THREADS_END_S = 2.0
PRODUCER_TIMEOUT_S = 120.0
"""How long a broker may owe an acknowledgement. Faust's own bound is 20 minutes, in which nothing goes on."""

MIN_SESSION_S = 10.0
"""Figures that come later harm no one, and Faust moves partitions slowly."""

_folded = msgspec.json.Decoder(Folded)


class AppEndedError(Exception):
    """Faust ended its app without saying why."""


class _App(faust.App):
    async def on_first_start(self) -> None:
        """Make no folders: nothing is stored on disk."""


class _ChangeLog(faust.Topic):
    """The table's change log, in whose records the attributes of CloudEvents stand as in all others."""

    def send_soon(self, *, value: Any = None, headers: Any = None, **rest: Any) -> Any:
        """See faust.Topic."""
        return super().send_soon(value=value, headers=headers or _headers(value), **rest)


def _headers(value: bytes | None) -> list[tuple[str, bytes]]:
    """None for a window that has expired."""
    if value is None:
        return []
    fact = _folded.decode(value)
    key = fact.key if isinstance(fact, WindowStatistics) else progress_key(fact.partition)
    attributes = cloud_event_headers(type(fact).__name__, fact.id, fact.by, fact.at, key)
    return [(name, text if isinstance(text, bytes) else (text or "").encode()) for name, text in attributes]


def credentials(conf: Conf) -> Credentials | None:
    """Who the app is to Kafka; None if Kafka does not want to know. Raises KafkaConfError."""
    login, context = python_security(conf)
    if isinstance(login, TokenLogin):
        return OAuthCredentials(oauth_cb=TokenProvider(login), ssl_context=context)
    if login is not None:
        return SASLCredentials(
            mechanism=login.mechanism, username=login.user, password=login.password, ssl_context=context
        )
    return SSLCredentials(context) if context is not None else None


def build_app(settings: TxnSettings, alive: Callable[[], None]) -> faust.App:
    """The app; `alive` is called every SIGN_OF_LIFE_S while it runs and has its table."""
    addresses = settings.kafka_bootstrap.split(",")
    app = _App(
        STATISTICS_GROUP,
        # It begins with the first one, and waits for it however long it is silent: after that another one is the first.
        broker=[f"aiokafka://{address.strip()}" for address in sample(addresses, len(addresses))],
        broker_client_id=settings.instance,
        broker_credentials=credentials(settings.given_kafka_conf()),
        broker_session_timeout=max(MIN_SESSION_S, settings.kafka_session_timeout_s),
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=MAX_RECORD_BYTES,
        producer_request_timeout=PRODUCER_TIMEOUT_S,
        store="memory://",
        table_standby_replicas=0,
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        autodiscover=False,
    )
    raw: dict[str, Any] = {
        "key_type": bytes,
        "value_type": bytes,
        "key_serializer": "raw",
        "value_serializer": "raw",
        "acks": False,
        "allow_empty": True,
        "internal": True,
    }
    change_log = _ChangeLog(
        app, topics=[STATISTICS_WINDOWS.name], partitions=settings.partitions, compacting=True, **raw
    )
    table = app.Table(
        "windows", key_type=bytes, value_type=bytes, partitions=settings.partitions, changelog_topic=change_log
    )
    by = f"txn-manager/{settings.instance}"
    windows = Windows(table, settings.partitions, settings.statistics_max_windows, by)
    topic = app.topic(STATISTICS.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def reports(stream: Any) -> None:
        async for event in stream.events():
            windows.fold(event.value, event.message.offset)

    async def sign_of_life() -> None:
        # Where Faust gave a recovery up, because a broker was silent, it waits for ever for the next rebalance.
        if not app.rebalancing:
            alive()

    app.agent(topic, name="reports")(reports)
    app.timer(interval=SIGN_OF_LIFE_S)(sign_of_life)
    return app


async def run(settings: TxnSettings, alive: Callable[[], None]) -> None:
    """Ends only by an exception: why the app ended."""
    app = build_app(settings, alive)
    try:
        await app.start()
        await app.wait_until_stopped()
        raise app.crash_reason or AppEndedError("Faust ended its app")
    except asyncio.CancelledError:
        await app.stop()
        await asyncio.to_thread(_join_threads)
        raise


def _join_threads() -> None:
    """Wait for Faust's threads, which `stop` may leave behind: at their end they call this event loop."""
    for thread in threading.enumerate():
        if isinstance(thread, WorkerThread):
            thread.join(THREADS_END_S)
