"""The commands of key-value tables."""

import msgspec

from sluice.domain.config import TableConfig
from sluice.domain.ids import TableId


class TableCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command handled under the key-value table's key."""

    scope: str
    table: str

    @property
    def table_id(self) -> TableId:
        return TableId(self.scope, self.table)

    @property
    def key(self) -> str:
        return self.table_id.key

    @property
    def aggregate(self) -> str:
        return self.table_id.aggregate


class CreateTable(TableCommand, frozen=True):
    config: TableConfig


class DeleteTable(TableCommand, frozen=True):
    """`creation_id` names the life of the table that is meant; "" is whichever."""

    creation_id: str = ""


Command = CreateTable | DeleteTable
