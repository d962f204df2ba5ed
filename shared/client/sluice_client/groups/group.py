"""A reader group as a whole: making it, checkpoints and cuts, readers that are gone, starting again elsewhere.

What is said to the controller (who reads which streams, and what of them is needed no more) and what stands in the
group's state are two things, and a process may die between them. The controller comes first; whoever finds the state
behind it writes it anew. Rules: reader-groups 5 and 6. Concurrency: calls of one object may run side by side.
"""

import asyncio
import logging
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from secrets import token_bytes
from uuid import uuid4

from msgspec.structs import replace

from sluice.controller_api import controller_pb2 as pb
from sluice.pravega import SegmentMissing, SegmentStoreError
from sluice.pravega.reader_group_config import GroupConfig, Retention
from sluice.pravega.reader_group_state import (
    SILENT,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    GroupState,
    RemoveOutstandingCheckpoints,
    Update,
    UpdateCheckpointPublished,
    UpdatingConfig,
)
from sluice.pravega.stream_cut import Offsets, StreamCut, cuts_of
from sluice_client.attempts import patiently
from sluice_client.controller import name_of, stream_message
from sluice_client.errors import ClientError, Refused, ScopeMissing, StreamMissing
from sluice_client.groups import decisions
from sluice_client.groups.encoding import Checkpoint
from sluice_client.groups.messages import check_config, check_group, config_message, config_of, cut_message
from sluice_client.groups.starting import first_state
from sluice_client.groups.state import is_complete, is_silent, outstanding, stored_positions
from sluice_client.groups.synchronizer import GroupMissing, GroupSynchronizer
from sluice_client.opening import Client

_LOOK_S = 0.2
_DEADLINE_S = 60.0

_log = logging.getLogger(__name__)


class ConfigDiffers(ClientError):
    """There is a reader group of this name with another configuration."""


class TooManyCheckpoints(ClientError):
    """As many checkpoints wait for readers as the group's configuration allows."""


class CheckpointGivenUp(ClientError):
    """The checkpoint was given up."""


class ReaderGroup:
    """One group; `create_reader_group` and `open_reader_group` make it. Every call may raise GroupMissing, ClientError.

    Calls that look do so after a look at the newest state.
    """

    def __init__(self, client: Client, scope: str, name: str, shared: GroupSynchronizer) -> None:
        self.scope = scope
        self.name = name
        self.shared = shared
        """The group's state, for readers."""
        self._client = client
        self._controller = client.controller

    # Looking

    async def config(self) -> GroupConfig:
        """What the group reads, and how."""
        return (await self.shared.refresh()).config

    async def readers(self) -> dict[str, list[str]]:
        """The readers in the group, each with its segments. One that died is among them until it is reported."""
        return {reader: sorted(held) for reader, held in (await self.shared.refresh()).assigned.items()}

    async def cuts(self) -> dict[str, StreamCut]:
        """How far the group is, as of its readers' last checkpoints: by `scope/stream`."""
        return cuts_of(stored_positions(await self.shared.refresh()))

    async def unread_bytes(self) -> int:
        """How much there is to read behind the last checkpoint, in all streams, up to where the group ends."""
        state = await self.shared.refresh()
        begun = state.checkpoints.last or stored_positions(state)
        found = await asyncio.gather(*(self._unread(state, cut) for cut in cuts_of(begun).values()))
        return sum(found)

    # Checkpoints

    async def checkpoint(self, name: str | None = None, deadline_s: float = _DEADLINE_S) -> Checkpoint:
        """A point at which every reader was: they say where they are when their programs have dealt with all before.

        Raises TooManyCheckpoints; CheckpointGivenUp after the deadline, and then those of others are given up as well,
        for they wait for the same readers. The result must be fetched before another checkpoint clears it.
        """
        id = name or str(uuid4())
        if SILENT in id:
            raise Refused(f"a checkpoint by the name of {id}")
        await self.shared.update(lambda state: _begun(state, id))
        return Checkpoint(id, await self._completed(id, deadline_s))

    async def generate_cuts(self, deadline_s: float = _DEADLINE_S) -> dict[str, StreamCut]:
        """Where the readers are, whether their programs have dealt with what they got or not: by `scope/stream`.

        Raises CheckpointGivenUp.
        """
        id = b64encode(token_bytes(32)).decode() + SILENT
        await self.shared.append([CreateCheckpoint(id)])
        return await self._completed(id, deadline_s)

    async def cancel_checkpoints(self) -> None:
        """Gives up all checkpoints that wait for readers."""
        await self.shared.update(lambda state: [RemoveOutstandingCheckpoints()] if outstanding(state) else [])

    async def publish_last_checkpoint(self) -> None:
        """Has the controller know the last checkpoint, if it has to and does not; for readers."""
        state = self.shared.state
        last = state.checkpoints.last
        if state.checkpoints.published or state.config.retention is not Retention.AUTOMATIC:
            return
        published = [UpdateCheckpointPublished(True)]
        try:
            await self.publish(state, last)
            await self.shared.update(lambda newest: published if newest.checkpoints.last == last else [])
        except (ClientError, SegmentStoreError) as error:
            # The readers publish the next one; until then the streams keep more than they need. Refused is one that
            # another reader's later one has overtaken; and, as Java's, each in a stream of which one segment was read
            # to the group's end and is in no state any more, while another was not: its cuts have a hole there.
            _log.warning("the last checkpoint of %s/%s was not published: %s", self.scope, self.name, error)

    async def publish(self, state: GroupState, positions: Offsets) -> None:
        """Says that the group, in this state, needs no more what lies before some positions. Raises Refused."""
        for cut in cuts_of(positions).values():
            await self._update_subscriber(state, await self._whole(state, cut))

    async def update_retention_cuts(self, cuts: Iterable[StreamCut]) -> None:
        """Says what of the streams the group needs no more: what lies before these cuts. Raises Refused."""
        state = await self.shared.refresh()
        if state.config.retention is not Retention.MANUAL:
            raise Refused(f"{self.scope}/{self.name} has the retention {state.config.retention.name}")
        for cut in cuts:
            await self._update_subscriber(state, await self._ended(cut))

    # Changing

    async def reader_offline(self, reader: str, positions: Offsets | None = None) -> None:
        """Reports that a reader is gone: others go on at these positions, or behind the reader's last checkpoint.

        Any process may, any number of times. What the reader read since is read again.
        """
        await self.shared.update(lambda state: decisions.leave(state, reader, positions or {}))

    async def reset(self, config: GroupConfig) -> None:
        """Has the group begin anew with another configuration; its readers are out, its checkpoints forgotten.

        Raises Refused, StreamMissing.
        """
        wanted = _with_all_ends(config)
        check_config(wanted)
        while True:
            state = await self.shared.update(lambda _: [UpdatingConfig(True)])
            new = replace(wanted, id=state.config.id, generation=state.config.generation)
            answer = await self._controller.call(
                lambda stub: stub.updateReaderGroup, config_message(self.scope, self.name, new)
            )
            if answer.status == pb.UpdateReaderGroupResponse.INVALID_CONFIG:
                if await self.repair() and self.shared.state.config.means_the_same(wanted):
                    # The answer to an earlier attempt was lost.
                    return
                if self.shared.state.config.generation == new.generation:
                    raise Refused(f"updateReaderGroup {self.scope}/{self.name}: the controller knows another group")
                continue
            if answer.status == pb.UpdateReaderGroupResponse.RG_NOT_FOUND:
                raise GroupMissing(f"{self.scope}/{self.name}")
            if answer.status != pb.UpdateReaderGroupResponse.SUCCESS:
                raise Refused(f"updateReaderGroup {self.scope}/{self.name}: {answer.status}")
            break
        await self._begin_anew(replace(new, generation=answer.generation))

    async def reset_to(self, cuts: dict[str, StreamCut]) -> None:
        """Has the group begin anew at cuts of its streams, as a checkpoint has them. Raises Refused."""
        config = await self.config()
        await self.reset(replace(config, starts={**config.starts, **cuts}))

    async def repair(self) -> bool:
        """Begins anew with the controller's configuration if that is newer; says whether it was.

        Who changes the configuration may die before the state has it; readers that see it half done call this.
        """
        config = await _stored_config(self._client, self.scope, self.name)
        if config is None:
            raise GroupMissing(f"{self.scope}/{self.name}")
        if (await self.shared.refresh()).config.generation >= config.generation:
            return False
        state = await self._begin_anew(config)
        return state.config.generation == config.generation

    async def _begin_anew(self, config: GroupConfig) -> GroupState:
        """Over an older generation only: readers may have done it meanwhile, and a later one may be there."""
        first = await first_state(self._controller, config)
        return await self.shared.update(lambda state: [first] if state.config.generation < config.generation else [])

    async def _completed(self, id: str, deadline_s: float) -> dict[str, StreamCut]:
        """The cuts of a checkpoint when it is complete. Raises CheckpointGivenUp."""
        try:
            async with asyncio.timeout(deadline_s):
                while True:
                    state = await self.shared.refresh()
                    if is_complete(state, id):
                        break
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            waited_for = sorted(self.shared.state.checkpoints.waiting.get(id, ()))
            if not is_silent(id):
                await self.cancel_checkpoints()
            raise CheckpointGivenUp(f"{id}: after {deadline_s} s it waits for the readers {waited_for}") from None
        positions = state.checkpoints.positions.get(id)
        if positions is None:
            raise CheckpointGivenUp(f"{id}: it was cleared before its result could be read")
        await self.shared.append([ClearCheckpointsBefore(id)])
        return cuts_of(positions)

    async def _update_subscriber(self, state: GroupState, cut: StreamCut) -> None:
        request = pb.SubscriberStreamCut(
            subscriber=f"{self.scope}/{self.name}",
            generation=state.config.generation,
            readerGroupId=str(state.config.id),
            streamCut=cut_message(cut),
        )
        status = (await self._controller.call(lambda stub: stub.updateSubscriberStreamCut, request)).status
        if status != pb.UpdateSubscriberStatus.SUCCESS:
            raise Refused(f"updateSubscriberStreamCut {cut}: {pb.UpdateSubscriberStatus.Status.Name(status)}")

    async def _whole(self, state: GroupState, cut: StreamCut) -> StreamCut:
        """A checkpoint's cut as the controller has cuts: ends of segments as numbers, and no holes.

        Segments that come later, and are in no reader's hands, are in it as not begun.
        """
        name = f"{cut.scope}/{cut.stream}/"
        known = [*state.future, *stored_positions(state)]
        later = {segment: -1 for segment in known if segment.startswith(name) and segment not in cut.offsets}
        return StreamCut(cut.scope, cut.stream, later | (await self._ended(cut)).offsets)

    async def _ended(self, cut: StreamCut) -> StreamCut:
        """The same with the ends of segments as numbers."""
        ends = {segment: (await self._extent(segment))[1] for segment, at in cut.offsets.items() if at < 0}
        return StreamCut(cut.scope, cut.stream, cut.offsets | ends)

    async def _unread(self, state: GroupState, cut: StreamCut) -> int:
        whole = await self._whole(state, cut)
        end = state.config.ends.get(f"{cut.scope}/{cut.stream}")
        request = pb.StreamCutRange(streamInfo=stream_message(cut.scope, cut.stream))
        getattr(request, "from").update(whole.by_id())
        request.to.update((await self._ended(end)).by_id() if end is not None else {})
        answer = await self._controller.call(lambda stub: stub.getSegmentsBetween, request)
        unread = 0
        for segment in map(name_of, answer.segments):
            start, length = await self._extent(segment)
            until = min(state.end.get(segment, length), length)
            unread += max(0, until - max(start, whole.offsets.get(segment, 0)))
        return unread

    async def _extent(self, segment: str) -> tuple[int, int]:
        """Where a segment begins and ends; nothing of one that was truncated away."""
        try:
            store, patience = self._client.store, self._client.patience
            info = await patiently(lambda: store.segment_info(segment), patience.deadline_s)
        except SegmentMissing:
            return 0, 0
        return info.start_offset, info.length


async def create_reader_group(client: Client, scope: str, name: str, config: GroupConfig) -> bool:
    """Makes a group; False: there was one with this configuration.

    Raises Refused, ScopeMissing, StreamMissing; ConfigDiffers if there is another one.
    """
    check_group(scope, name)
    wanted = replace(_with_all_ends(config), id=uuid4(), generation=0)
    check_config(wanted)
    answer = await client.controller.call(lambda stub: stub.createReaderGroup, config_message(scope, name, wanted))
    if answer.status == pb.CreateReaderGroupResponse.SCOPE_NOT_FOUND:
        raise ScopeMissing(scope)
    if answer.status != pb.CreateReaderGroupResponse.SUCCESS:
        raise Refused(f"createReaderGroup {scope}/{name}: {pb.CreateReaderGroupResponse.Status.Name(answer.status)}")
    stored = config_of(answer.config)
    if not stored.means_the_same(wanted):
        raise ConfigDiffers(f"{scope}/{name}: {stored}")
    if stored.generation == 0:
        # Also if another process made it: that one may have died before it wrote this.
        shared = await GroupSynchronizer.open(client, scope, name)
        try:
            await shared.refresh()
        except GroupMissing:
            first = await first_state(client.controller, stored)
            if stored.retention is not Retention.NONE:
                # A subscriber that has said nothing yet holds nothing back. If another process began the group
                # meanwhile, its readers may have said more.
                with suppress(Refused):
                    await ReaderGroup(client, scope, name, shared).publish(first, stored_positions(first))
            await shared.begin(first)
    return stored.id == wanted.id


async def open_reader_group(client: Client, scope: str, name: str) -> ReaderGroup:
    """A group that is there. Raises GroupMissing."""
    check_group(scope, name)
    group = ReaderGroup(client, scope, name, await GroupSynchronizer.open(client, scope, name))
    await group.shared.refresh()
    return group


async def delete_reader_group(client: Client, scope: str, name: str) -> bool:
    """Deletes a group; its readers fail. False: there was none."""
    check_group(scope, name)
    config = await _stored_config(client, scope, name)
    if config is None:
        return False
    request = pb.ReaderGroupInfo(scope=scope, readerGroup=name, readerGroupId=str(config.id))
    status = (await client.controller.call(lambda stub: stub.deleteReaderGroup, request)).status
    if status == pb.DeleteReaderGroupStatus.FAILURE:
        raise Refused(f"deleteReaderGroup {scope}/{name}")
    return status == pb.DeleteReaderGroupStatus.SUCCESS


async def _stored_config(client: Client, scope: str, name: str) -> GroupConfig | None:
    request = pb.ReaderGroupInfo(scope=scope, readerGroup=name)
    try:
        answer = await client.controller.call(lambda stub: stub.getReaderGroupConfig, request)
    except StreamMissing:
        # So a controller says that the scope is missing.
        return None
    return config_of(answer.config) if answer.status == pb.ReaderGroupConfigResponse.SUCCESS else None


def _with_all_ends(config: GroupConfig) -> GroupConfig:
    """Every stream has an end, as Java has it, though it may be no bound: configurations are compared."""
    return replace(config, ends={**dict.fromkeys(config.starts), **config.ends})


def _begun(state: GroupState, id: str) -> list[Update]:
    if len(outstanding(state)) >= state.config.max_outstanding:
        raise TooManyCheckpoints(f"{state.config.max_outstanding}: {state.checkpoints.waiting}")
    return [CreateCheckpoint(id)]
