"""What the original knows, decoded: scopes, streams, reader groups, key-value tables, and what belongs to none of them.

What is still in the original's own words (`tables.py`, `records.py`) stays so: nothing is derived, left out or mended
here. Pure.
"""

from collections.abc import Iterator
from typing import Protocol
from uuid import UUID

import msgspec

from sluice.domain.host import Host
from sluice_cli.migration import records, tables


class Stream(msgspec.Struct, frozen=True, kw_only=True, tag="stream"):
    """A stream; internal ones, too. `metadata` is None if there is no such table: its creation has only begun, or its
    deletion is almost done. `transactions` are by the epoch of their table.
    """

    scope: str
    name: str
    id: UUID
    metadata: tables.StreamMetadata | None
    transactions: dict[int, dict[UUID, records.ActiveTransaction]] = {}
    writers: dict[str, records.WriterMark] = {}


class ReaderGroup(msgspec.Struct, frozen=True, kw_only=True, tag="readerGroup"):
    """A reader group; `id` is known to its readers."""

    scope: str
    name: str
    id: UUID
    metadata: tables.GroupMetadata | None


class KeyValueTable(msgspec.Struct, frozen=True, kw_only=True, tag="table"):
    """A key-value table."""

    scope: str
    name: str
    id: UUID
    metadata: tables.TableMetadata | None


Thing = Stream | ReaderGroup | KeyValueTable


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A thing with an entry that cannot be decoded; `why` names it."""

    kind: type[Thing]
    scope: str
    name: str
    why: str


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """A scope, and the ids of what lies in it by name. `deleting`: it is being deleted with all of that."""

    name: str
    id: UUID
    streams: dict[str, UUID] = {}
    groups: dict[str, UUID] = {}
    tables: dict[str, UUID] = {}
    deleting: bool = False


class CompletedTransaction(msgspec.Struct, frozen=True):
    """A transaction that has ended."""

    scope: str
    stream: str
    id: UUID
    ended: records.CompletedTransaction


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """What belongs to no single stream, group or table.

    `deleted_streams` and `deleted_tables` are the highest numbers of segments there were, by `scope/name`. No id of a
    transaction is above `counter`, of 96 bits. `containers` are those of the segment stores.
    """

    scopes: dict[str, Scope]
    deleted_streams: dict[str, int]
    deleted_tables: dict[str, int]
    completed: tuple[CompletedTransaction, ...]
    counter: int
    containers: dict[int, Host] = {}


class Original(Protocol):
    """All of it: a dump, or what was read of a live one. A thing is read when the iterator reaches it."""

    @property
    def cluster(self) -> Cluster:
        """What belongs to no single thing."""
        ...

    def things(self) -> Iterator[Thing | Unreadable]:
        """All streams, groups and tables, by scope and name; blocks. Raises UnreadableEntry for an index of them."""
        ...
