"""The commands of reader groups."""

import msgspec

from sluice.domain.config import ReaderGroupConfig
from sluice.domain.ids import GroupId


class GroupCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command handled under the reader group's key."""

    scope: str
    group: str

    @property
    def group_id(self) -> GroupId:
        return GroupId(self.scope, self.group)

    @property
    def key(self) -> str:
        return self.group_id.key

    @property
    def aggregate(self) -> str:
        return self.group_id.aggregate


class CreateReaderGroup(GroupCommand, frozen=True):
    config: ReaderGroupConfig


class UpdateReaderGroup(GroupCommand, frozen=True):
    """`config.generation` and `config.id` must be the stored ones."""

    config: ReaderGroupConfig


class DeleteReaderGroup(GroupCommand, frozen=True):
    """`id` None deletes the group whatever its id; `creation_id` names the life that is meant, "" is whichever."""

    id: str | None = None
    creation_id: str = ""


Command = CreateReaderGroup | UpdateReaderGroup | DeleteReaderGroup
