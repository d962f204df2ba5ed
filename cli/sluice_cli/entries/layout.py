"""What entries of a key-value table are like: the lengths of its keys, and the partition of each."""

from operator import itemgetter
from typing import Any, NamedTuple

from sluice.domain.segment import kvt_segment_name
from sluice.pravega.event_routing import segment_at
from sluice.pravega.table_routing import entry_position
from sluice_cli.errors import RefusedError, UsageError


class Key(NamedTuple):
    """A key in bytes; `secondary` is empty where the table has none."""

    primary: bytes
    secondary: bytes

    @property
    def whole(self) -> bytes:
        """The key as a segment store has it."""
        return self.primary + self.secondary


class Layout:
    """Of one table, by what the API says of it. Raises RefusedError unless the table is there, whole."""

    def __init__(self, table: dict[str, Any]) -> None:
        scope, own, config = table["scope"], table["name"], table["config"]
        self.name = f"{scope}/{own}"
        if table["state"] != "ACTIVE":
            raise RefusedError(f"table {self.name} is {table['state']}", "`sluice workflow list` says what keeps it")
        self._primary, self._secondary = config["primaryKeyLength"], config["secondaryKeyLength"]
        found = ((segment["high"], kvt_segment_name(scope, own, segment["id"])) for segment in table["segments"])
        self._partitions = sorted(found, key=itemgetter(0))

    @property
    def partitions(self) -> list[str]:
        """The qualified names of the table's segments, in the order of their ranges."""
        return [name for _, name in self._partitions]

    def key(self, primary: bytes, secondary: bytes | None) -> Key:
        """A key that the table can have. Raises UsageError: nothing is padded or cut off."""
        self._check("key", primary, self._primary)
        if secondary is None and self._secondary:
            raise UsageError(
                f"table {self.name} has secondary keys of {self._secondary} bytes", "give it with --secondary KEY"
            )
        if secondary is not None:
            if not self._secondary:
                raise UsageError(f"table {self.name} has no secondary keys", "leave --secondary out")
            self._check("secondary key", secondary, self._secondary)
        return Key(primary, secondary or b"")

    def split(self, whole: bytes) -> Key:
        """A key as a segment store has it, taken apart."""
        return Key(whole[: self._primary], whole[self._primary :])

    def partition_of(self, key: Key) -> str:
        """The qualified name of the segment that the key is in."""
        return segment_at(entry_position(key.primary), self._partitions)

    def _check(self, what: str, given: bytes, length: int) -> None:
        if len(given) != length:
            raise UsageError(
                f"the {what} has {len(given)} bytes; in table {self.name} it has {length}",
                "the length belongs to the table; nothing is padded or cut off",
            )
