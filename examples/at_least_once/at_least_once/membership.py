"""The members of a group of workers, over a state synchronizer: `membership_state` with a stream behind it.

Concurrency: calls may run side by side.
"""

from collections.abc import Mapping

from at_least_once.membership_state import (
    Decision,
    MembershipState,
    Update,
    beat,
    declare_gone,
    evolve,
    join,
    leave,
)
from at_least_once.streams import open_state_stream
from sluice_client import Client, JsonCodec, RevisionedStream, StateSynchronizer


class Membership:
    """Who is there. Every call raises ClientError or SegmentStoreError if the stream cannot be reached."""

    def __init__(self, stream: RevisionedStream) -> None:
        updates: JsonCodec[Update] = JsonCodec(Update)
        self._shared: StateSynchronizer[MembershipState, Update] = StateSynchronizer(
            stream,
            initial=MembershipState,
            apply=evolve,
            state_codec=JsonCodec(MembershipState),
            update_codec=updates,
        )

    @classmethod
    async def open(cls, client: Client, scope: str, group: str) -> "Membership":
        """The members of a group; makes its stream if it is not there, and begins it, so that Java can read it."""
        membership = cls(await open_state_stream(client, scope, f"{group}-members"))
        await membership._shared.begin(MembershipState())
        return membership

    async def fetch(self) -> MembershipState:
        """The newest state."""
        return await self._shared.fetch()

    async def join(self, member: str) -> None:
        """Adds a member under a name that none had before."""
        await self._update(join(member))

    async def beat(self, member: str) -> None:
        """Shows that a member is there. Raises Gone if others have declared it gone."""
        await self._update(beat(member))

    async def leave(self, member: str) -> None:
        """Removes a member, for itself."""
        await self._update(leave(member))

    async def declare_gone(self, silent: Mapping[str, int], by: str) -> None:
        """Removes those that still have the count they are given with."""
        await self._update(declare_gone(silent, by))

    async def compact(self) -> None:
        """Shortens the stream."""
        await self._shared.compact()

    async def _update(self, decision: Decision) -> None:
        await self._shared.update(decision)
