"""What differs between two dumps, thing by thing and key by key."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from sluice_cli.migration import raw
from sluice_cli.migration.dump import Dump
from sluice_cli.migration.raw import Name, Raw


class Difference(msgspec.Struct, frozen=True):
    """A key that only one of them has, or that has another value; `table` and `key` are empty for a whole thing."""

    of: Name
    what: Literal["added", "removed", "changed"]
    table: str = ""
    key: str = ""


def differences(first: Dump, second: Dump, versions: bool = False) -> Iterator[Difference]:
    """From the first to the second. Equal values of other versions count only with `versions`."""
    old, new = set(_all(first)), set(_all(second))
    for name in sorted(old | new):
        if name not in new:
            yield Difference(name, "removed")
        elif name not in old:
            yield Difference(name, "added")
        else:
            yield from _within(name, first[name], second[name], versions)


def _all(found: Dump) -> Iterator[Name]:
    yield Name(raw.CLUSTER)
    yield from (scope.of for scope in found.scopes())
    yield from found.names()
    yield from found.tops()


def _within(name: Name, first: Raw, second: Raw, versions: bool) -> Iterator[Difference]:
    for table in sorted(first.tables.keys() | second.tables.keys()):
        old, new = (_entries(found, table, versions) for found in (first, second))
        for key in sorted(old.keys() | new.keys()):
            if key not in new:
                yield Difference(name, "removed", table, key)
            elif key not in old:
                yield Difference(name, "added", table, key)
            elif old[key] != new[key]:
                yield Difference(name, "changed", table, key)


def _entries(found: Raw, table: str, versions: bool) -> dict[str, tuple[bytes, int]]:
    entries = found.tables[table].entries if table in found.tables else ()
    return {entry.key: (entry.value, entry.version if versions else 0) for entry in entries}
