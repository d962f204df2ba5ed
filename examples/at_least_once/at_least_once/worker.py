"""One worker: a member of its group, a reader of its stream, and a pruner of the dead.

A worker lives once or several times: one that was declared gone while it stood still, or was cut off, finds that its
heartbeat is refused, or its reader offline. Then its segments are others' already; it forgets what it had in hand and
begins anew under another name. Concurrency: the heartbeat, the pruner and the processor are tasks side by side; the end
of one ends all.
"""

import asyncio
import logging
from secrets import token_hex

from at_least_once.functions import Function
from at_least_once.groups import make_group
from at_least_once.membership import Membership
from at_least_once.membership_state import Gone
from at_least_once.output import Output
from at_least_once.patience import PASSING
from at_least_once.processor import Processor
from at_least_once.pruner import Pruner
from at_least_once.settings import AppSettings
from at_least_once.streams import ensure_stream
from sluice.exceptions import in_words
from sluice_client import Client, ReaderGroup, ReaderOffline, open_reader

_DEPARTURE_S = 5.0
_log = logging.getLogger(__name__)


class Worker:
    """Works until it is stopped. `done` counts the events whose results are stored."""

    def __init__(
        self,
        client: Client,
        membership: Membership,
        group: ReaderGroup,
        function: Function,
        output: Output,
        settings: AppSettings,
    ) -> None:
        self._client = client
        self.membership = membership
        self.group = group
        self._function = function
        self._output = output
        self._settings = settings
        self.done = 0

    @classmethod
    async def open(cls, client: Client, function: Function, output: Output, settings: AppSettings) -> "Worker":
        """A worker of these settings; makes the streams and the group that are not there.

        Raises OtherInput.
        """
        await ensure_stream(client, settings.scope, settings.input, settings.scaling)
        group = await make_group(client, settings)
        membership = await Membership.open(client, settings.scope, settings.group)
        return cls(client, membership, group, function, output, settings)

    async def run(self, stop: asyncio.Event) -> None:
        """Lives until it is to stop, or the group has read its stream to the end.

        Raises FunctionFailed, and what lasts longer than the patience.
        """
        while not stop.is_set():
            name = f"{self._settings.name}-{token_hex(4)}"
            try:
                await self._live(name, stop)
                break
            except* (Gone, ReaderOffline) as refusals:
                _log.warning("%s was declared gone: begins anew (%s)", name, refusals.exceptions[0])
                self._output.discard()

    async def _live(self, name: str, stop: asyncio.Event) -> None:
        processor: Processor | None = None
        await self.membership.join(name)
        try:
            async with asyncio.TaskGroup() as tasks:
                beating = tasks.create_task(self._beat(name))
                pruner = Pruner(self.membership, self.group, self._settings.missed, name)
                pruning = tasks.create_task(pruner.run(self._settings.heartbeat_s))
                reader = await open_reader(self._client, self._settings.scope, self._settings.group, name)
                processor = Processor(reader, self._function, self._output)
                _log.info("%s is online", name)
                await processor.run(stop)
                if not stop.is_set():
                    _log.warning(
                        "group %s has read its stream to the end: it is sealed, or was deleted. "
                        "For a stream that was made anew, another group",
                        self._settings.group,
                    )
                beating.cancel()
                pruning.cancel()
        finally:
            await self._depart(name, processor)

    async def _beat(self, name: str) -> None:
        while True:
            try:
                await self.membership.beat(name)
            except PASSING as error:
                _log.warning("%s missed a heartbeat: %s", name, error)
            await asyncio.sleep(self._settings.heartbeat_s)

    async def _depart(self, name: str, processor: Processor | None) -> None:
        """First the reader, then the member: see `pruner`."""
        try:
            async with asyncio.timeout(_DEPARTURE_S):
                if processor is not None:
                    self.done += processor.done
                    await processor.leave()
                await self.membership.leave(name)
        except (*PASSING, TimeoutError) as error:
            _log.warning("%s could not take leave, others will find it gone: %s", name, in_words(error))
        else:
            _log.info("%s is offline", name)
