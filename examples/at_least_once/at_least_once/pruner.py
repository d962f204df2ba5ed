"""Takes the readers of dead workers offline at their last checkpoints.

Every worker does this, and it may run as a program of its own: it needs no leader, because each step is a decision on
the newest state that does nothing if another one has done it. A worker joins before its reader comes online and leaves
after its reader went offline; so a reader without a member is that of a dead worker, provided that the readers are
looked up before the members.
"""

import asyncio
import logging

from at_least_once.membership import Membership
from at_least_once.membership_state import Observer
from at_least_once.patience import PASSING
from at_least_once.settings import CheckpointSettings, GroupSettings
from sluice_client import Client, ReaderGroup, open_reader_group

COMPACT_EVERY = 100
"""Heartbeats after which the first of the members shortens the stream of the members."""

_log = logging.getLogger(__name__)


class Pruner:
    """One observer of a group; `by` is its name, that of a member or any other."""

    def __init__(self, membership: Membership, group: ReaderGroup, missed: int, by: str) -> None:
        self._membership = membership
        self._group = group
        self._observer = Observer(missed)
        self._by = by
        self._looks = 0

    async def look(self) -> None:
        """To be done once per heartbeat; raises as its two parts do, and then counts as not done."""
        members = (await self._membership.fetch()).members
        silent = self._observer.look(members)
        silent.pop(self._by, None)
        if silent:
            await self._membership.declare_gone(silent, self._by)
            _log.warning("gone: %s", ", ".join(silent))
        await self._prune()
        self._looks += 1
        if self._looks % COMPACT_EVERY == 0 and self._by == min(members, default=None):
            await self._membership.compact()

    async def run(self, heartbeat_s: float) -> None:
        """Looks until it is cancelled; looks that fail while something cannot be reached are left out."""
        while True:
            try:
                await self.look()
            except PASSING as error:
                _log.warning("could not look who is there: %s", error)
            await asyncio.sleep(heartbeat_s)

    async def _prune(self) -> None:
        readers = await self._group.readers()
        dead = readers.keys() - (await self._membership.fetch()).members.keys()
        for reader in sorted(dead):
            await self._group.reader_offline(reader)
            _log.warning("taken offline: %s", reader)


async def run_pruner(client: Client, settings: GroupSettings, stop: asyncio.Event) -> int:
    """The program: prunes until it is stopped. Raises GroupMissing."""
    group = await open_reader_group(client, settings.scope, settings.group)
    membership = await Membership.open(client, settings.scope, settings.group)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(Pruner(membership, group, settings.missed, "pruner").run(settings.heartbeat_s))
        await stop.wait()
        running.cancel()
    return 0


async def show_members(client: Client, settings: GroupSettings, _stop: asyncio.Event) -> int:
    """Prints who is there, who reads what, and how far they were at the last checkpoint. Raises GroupMissing."""
    state = (await open_reader_group(client, settings.scope, settings.group)).shared.state
    members = (await (await Membership.open(client, settings.scope, settings.group)).fetch()).members
    for name in sorted(members.keys() | state.assigned.keys()):
        print(f"{name}: " + (f"{members[name]} heartbeats" if name in members else "gone"))
        for segment, offset in sorted(state.assigned.get(name, {}).items()):
            print(f"    {segment} at {offset}")
    for segment, offset in sorted(state.unassigned.items()):
        print(f"without a reader: {segment} at {offset}")
    return 0


async def make_checkpoint(client: Client, settings: CheckpointSettings, _stop: asyncio.Event) -> int:
    """Has every worker store what it has read, and prints the cut up to which all is done.

    Raises GroupMissing, CheckpointGivenUp.
    """
    group = await open_reader_group(client, settings.scope, settings.group)
    checkpoint = await group.checkpoint(deadline_s=settings.deadline_s)
    for cut in checkpoint.cuts.values():
        print(cut.text)
    return 0
