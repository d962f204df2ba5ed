"""The reader group aggregate: its configuration, and the streams that must keep what it has yet to read.

A group's state is in its stream `_RG<group>`, which is created and deleted with it. Groups with a retention type
are subscribers of their streams; those have keys of their own, so subscribing travels as requests.
Rules: controller-grpc-api 5.8, background-and-other-workflows 6.
"""

from enum import Enum

import msgspec

from sluice.domain.config import ReaderGroupConfig
from sluice.domain.decision import Reader, View
from sluice.domain.ids import GroupId, StreamId
from sluice.domain.workflow import Workflow

ZERO_ID = "00000000-0000-0000-0000-000000000000"


class GroupState(Enum):
    CREATING = "CREATING"
    ACTIVE = "ACTIVE"
    DELETING = "DELETING"


class GroupWorkflow(Workflow):
    """`leaves` are the streams ("scope/stream") that have yet to forget the group."""

    leaves: tuple[str, ...] = ()


class ReaderGroup(msgspec.Struct, array_like=True):
    id: GroupId
    creation_id: str
    state: GroupState
    config: ReaderGroupConfig
    created_at: int
    workflow: GroupWorkflow | None = None

    @property
    def subscriber(self) -> str:
        """The name under which the group subscribes to streams."""
        return f"{self.id}"

    def subscribes_to(self, stream: StreamId, id: str, generation: int) -> bool:
        """Whether this is the group with this UUID and generation, and the stream must keep what it has yet to read."""
        config = self.config
        is_meant = (config.id, config.generation) == (id, generation) and self.state is not GroupState.DELETING
        return is_meant and config.subscribes() and f"{stream}" in config.starts


def find_group(reader: Reader | View, id: GroupId) -> ReaderGroup | None:
    state = reader.get(id.aggregate)
    return state if isinstance(state, ReaderGroup) else None
