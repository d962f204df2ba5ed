"""Keeps the process of the Faust app going: when it ends another one begins, with exponential waiting.

Faust ends its app for good when something goes wrong that it does not expect, may wait for a minute when it closes
without Kafka, and takes processor as it likes. In a process of its own none of that matters: the service serves on,
and readers of the statistics see how old the figures are. Memory is another matter: a container that has no more of it
ends with all its processes. Belongs to the event loop.
"""

import asyncio
import contextlib
import logging
import os
import random
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

from sluice.child_process import ChildProcess
from sluice.exceptions import in_words
from sluice.kafka_config.conf import KafkaConfError
from sluice.kafka_config.python import ignored_by_python, python_security
from txn_manager.settings import TxnSettings

log = logging.getLogger(__name__)

FAUST = "faust-streaming"
"""The distribution. Of a process that has imported it, the module says no more where it comes from."""

COMMAND = (sys.executable, "-m", "txn_manager.statistics")
DEGRADED_AFTER_S = 30.0
MAX_SILENCE_S = 120.0
STOP_S = 3.0
RETRY_MIN_S = 1.0
RETRY_MAX_S = 60.0
SETTLED_S = 120.0


class StatisticsProcess:
    """The process, whichever run of it. It writes a line for each heartbeat; without one for long it is killed."""

    def __init__(self, settings: TxnSettings, command: Sequence[str] = COMMAND) -> None:
        self._settings = settings
        self._refused: str | None = None
        self._environment = {**os.environ, "SLUICE_INSTANCE": settings.instance}
        self._command = command
        self._alive_at = time.monotonic()
        self._living: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Return at once. Without Faust, or if it cannot connect to Kafka as the settings say, there is no process."""
        try:
            conf = self._settings.given_kafka_conf()
            python_security(conf)
        except KafkaConfError as error:
            self._refuse(str(error))
            return
        try:
            version(FAUST)
        except PackageNotFoundError:
            self._refuse("Faust is missing: install sluice-streams-txn-manager[statistics]")
            return
        if ignored := ignored_by_python(conf):
            log.info("settings of Kafka's clients that Faust ignores", extra={"settings": ignored})
        self._alive_at = time.monotonic()
        self._living = asyncio.get_running_loop().create_task(self._live(), name="statistics")

    async def stop(self) -> None:
        """End the process; one that does not end by itself is killed."""
        if self._living is not None:
            self._living.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._living
            self._living = None

    def problem(self) -> str | None:
        """Why statistics grow old, for operators."""
        if self._refused is not None:
            return self._refused
        silent_s = time.monotonic() - self._alive_at
        return f"no heartbeat for {silent_s:.0f} s" if silent_s > DEGRADED_AFTER_S else None

    def _refuse(self, why: str) -> None:
        self._refused = why
        log.error("no statistics", extra={"error": why})

    async def _live(self) -> None:
        wait_s = RETRY_MIN_S
        while True:
            began = time.monotonic()
            try:
                status: object = await self._life()
            except OSError as error:
                status = in_words(error)
            if time.monotonic() - began > SETTLED_S:
                wait_s = RETRY_MIN_S
            log.warning("statistics ended, begin anew", extra={"status": status, "wait_s": wait_s})
            await asyncio.sleep(wait_s * random.uniform(0.5, 1.0))
            wait_s = min(2 * wait_s, RETRY_MAX_S)

    async def _life(self) -> int:
        """Its exit status."""
        process = await ChildProcess.start(self._command, self._environment)
        try:
            while await _line_of(process.output):
                self._alive_at = time.monotonic()
        finally:
            process.terminate()
            status = await process.ends(STOP_S)
        return status


async def _line_of(output: asyncio.StreamReader) -> bytes:
    """The next line; nothing at the end, or after `MAX_SILENCE_S`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MAX_SILENCE_S):
            return await output.readline()
    return b""
