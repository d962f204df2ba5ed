"""What became true of key-value tables."""

import msgspec

from sluice.domain.config import TableConfig
from sluice.domain.ids import TableId
from sluice.domain.segment import Segment


class TableEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str
    table: str

    @property
    def table_id(self) -> TableId:
        return TableId(self.scope, self.table)

    @property
    def aggregate(self) -> str:
        return self.table_id.aggregate


class TableCreationStarted(TableEvent, frozen=True):
    creation_id: str
    config: TableConfig
    created_at: int
    segments: tuple[Segment, ...]
    request: str | None = None
    at: int = 0


class TableCreated(TableEvent, frozen=True):
    pass


class TableDeletionStarted(TableEvent, frozen=True):
    """With `refusal` it undoes a creation, whose request is refused in the end for that reason."""

    request: str | None = None
    at: int = 0
    refusal: str = ""


class TableDeleted(TableEvent, frozen=True):
    """The table is gone; a later one of this name numbers its segments from `next_number`."""

    next_number: int


Event = TableCreationStarted | TableCreated | TableDeletionStarted | TableDeleted
