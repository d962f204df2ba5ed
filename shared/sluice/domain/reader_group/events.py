"""What became true of reader groups."""

import msgspec

from sluice.domain.config import ReaderGroupConfig
from sluice.domain.ids import GroupId


class GroupEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    group: str

    @property
    def group_id(self) -> GroupId:
        return GroupId(self.scope, self.group)

    @property
    def aggregate(self) -> str:
        return self.group_id.aggregate


class ReaderGroupCreationStarted(GroupEvent, frozen=True):
    creation_id: str
    config: ReaderGroupConfig
    created_at: int
    request: str | None = None
    at: int = 0


class ReaderGroupCreated(GroupEvent, frozen=True):
    pass


class ReaderGroupUpdateStarted(GroupEvent, frozen=True):
    """The new configuration holds at once; the streams in `leaves` have yet to forget the group."""

    config: ReaderGroupConfig
    leaves: tuple[str, ...]
    request: str | None = None
    at: int = 0


class ReaderGroupUpdated(GroupEvent, frozen=True):
    """The update is done; with `config` it began and ended in this one record."""

    config: ReaderGroupConfig | None = None


class ReaderGroupDeletionStarted(GroupEvent, frozen=True):
    """With `refusal` it undoes a creation, whose request is refused in the end for that reason."""

    request: str | None = None
    at: int = 0
    refusal: str = ""


class ReaderGroupDeleted(GroupEvent, frozen=True):
    pass


Event = (
    ReaderGroupCreationStarted
    | ReaderGroupCreated
    | ReaderGroupUpdateStarted
    | ReaderGroupUpdated
    | ReaderGroupDeletionStarted
    | ReaderGroupDeleted
)
