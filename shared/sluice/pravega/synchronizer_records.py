"""What a state synchronizer writes as one entry: the whole state, or updates that belong together.

| bytes | |
|---|---|
| 4 | 1: the rest is a state, by the state codec. 2: the rest is updates |
| 4 | of each update: its length |
| so many | of each update: the update, by the update codec |

Numbers are big-endian. Java's `StateSynchronizer` writes the same, but may write zeros behind a state.

Pure functions.
"""

import struct
from collections.abc import Iterator, Sequence

from sluice.pravega.envelope import MalformedPayload

_STATE = b"\0\0\0\1"
_UPDATES = b"\0\0\0\2"
_LENGTH = struct.Struct(">I")


def state_record(state: bytes) -> bytes:
    """The entry for a state."""
    return _STATE + state


def updates_record(updates: Sequence[bytes]) -> bytes:
    """The entry for updates."""
    return _UPDATES + b"".join(_LENGTH.pack(len(update)) + update for update in updates)


def state_in(entry: bytes) -> bytes | None:
    """The state in an entry, None if it holds none."""
    return entry[len(_STATE) :] if entry.startswith(_STATE) else None


def updates_in(entry: bytes) -> Iterator[bytes]:
    """The updates in an entry that holds no state. Raises MalformedPayload."""
    if not entry.startswith(_UPDATES):
        raise MalformedPayload(f"no entry of a state synchronizer: it begins with {entry[: len(_UPDATES)]!r}")
    at = len(_UPDATES)
    while at < len(entry):
        start = at + _LENGTH.size
        if start > len(entry):
            raise MalformedPayload(f"updates of {len(entry)} bytes: no length at {at}")
        end = start + _LENGTH.unpack_from(entry, at)[0]
        if end > len(entry):
            raise MalformedPayload(f"updates of {len(entry)} bytes: one would end at {end}")
        yield entry[start:end]
        at = end
