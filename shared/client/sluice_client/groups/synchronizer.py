"""One copy of the state of a reader group, in the group's state stream `_RG<group>`.

Concurrency: calls of one object go one after the other; other readers may do what they like meanwhile.
"""

from collections.abc import Callable, Sequence

from sluice.domain.names import group_stream
from sluice.pravega.envelope import MalformedPayload
from sluice.pravega.reader_group_state import GroupState, Update, decode_state, decode_update, encode_update
from sluice_client.errors import ClientError, StreamMissing, StreamSealed
from sluice_client.groups import state as rules
from sluice_client.opening import Client
from sluice_client.revisioned_stream import RevisionedStream
from sluice_client.synchronizer import StateSynchronizer

COMPACT_BYTES = 512 * 1024
"""How much is written behind the mark before a reader compacts."""
COMPACT_SHARE = 0.05
"""How many of the readers' looks at so much compact: enough that one does, few enough that not all do."""


class GroupMissing(ClientError):
    """There is no such reader group, or its creation was not completed."""


class GroupSynchronizer:
    """The state of a group and changes of it. Every call may raise GroupMissing and what `StateSynchronizer`'s do."""

    def __init__(self, stream: RevisionedStream, compact_bytes: int = COMPACT_BYTES) -> None:
        self._stream = stream
        self._compact_bytes = compact_bytes
        self._shared: StateSynchronizer[GroupState | None, Update] = StateSynchronizer(
            stream, initial=lambda: None, apply=_apply, state_codec=_StateCodec(), update_codec=_UpdateCodec()
        )

    @classmethod
    async def open(cls, client: Client, scope: str, group: str) -> "GroupSynchronizer":
        """The copy of a group that a controller knows. Raises GroupMissing."""
        try:
            return cls(await client.revisioned_stream(scope, group_stream(group)))
        except (StreamMissing, StreamSealed) as error:
            raise GroupMissing(f"{scope}/{group}") from error

    @property
    def state(self) -> GroupState:
        """The state as of the last call that ended."""
        return self._present(self._shared.state)

    async def refresh(self) -> GroupState:
        """Applies what was written up to now, and returns the state."""
        return self._present(await self._shared.fetch())

    async def update(self, decide: Callable[[GroupState], Sequence[Update]]) -> GroupState:
        """Writes what `decide` makes of the newest state, on condition that it is; returns the state after.

        `decide` is called anew, with the newer state, as often as another was first: what it returned before counts no
        more. What it raises is passed on, and nothing is written.
        """
        return self._present(await self._shared.update(lambda state: decide(self._present(state))))

    async def append(self, updates: Sequence[Update]) -> None:
        """Writes updates that no state breaks, whatever it is by now; the copy gets them with the next call."""
        await self._shared.append(updates)

    async def begin(self, first: GroupState) -> GroupState:
        """Writes the first state if there is none; returns the one that is there."""
        return self._present(await self._shared.begin(first))

    async def compact_if_long(self, chance: float) -> None:
        """Shortens the stream if it has got long, and `chance`, between 0 and 1, is small enough."""
        if chance < COMPACT_SHARE:
            mark = await self._stream.mark()
            if self._shared.revision.offset - (mark.offset if mark is not None else 0) > self._compact_bytes:
                await self._shared.compact()

    def _present(self, state: GroupState | None) -> GroupState:
        if state is None:
            raise GroupMissing(f"nothing in {self._stream.segment}")
        return state


def _apply(state: GroupState | None, update: Update) -> GroupState:
    if isinstance(update, GroupState):
        return update
    if state is None:
        raise MalformedPayload("an update of a state that is not there")
    return rules.apply(state, update)


class _UpdateCodec:
    def encode(self, value: Update) -> bytes:
        return encode_update(value)

    def decode(self, data: bytes) -> Update:
        return decode_update(data)


class _StateCodec:
    def encode(self, value: GroupState | None) -> bytes:
        if value is None:
            raise AssertionError("only a state that is there is compacted")
        return encode_update(value)

    def decode(self, data: bytes) -> GroupState:
        return decode_state(data)
