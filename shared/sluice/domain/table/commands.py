"""What is asked of key-value tables."""

import msgspec

from sluice.domain.config import TableConfig
from sluice.domain.names import key_of, table_aggregate


class TableCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command handled under the key-value table's key."""

    scope: str
    table: str

    @property
    def key(self) -> str:
        return key_of(self.aggregate)

    @property
    def aggregate(self) -> str:
        return table_aggregate(self.scope, self.table)


class CreateTable(TableCommand, frozen=True):
    config: TableConfig


class DeleteTable(TableCommand, frozen=True):
    """`creation_id` names the life of the table that is meant; "" is whichever."""

    creation_id: str = ""


Command = CreateTable | DeleteTable
