"""States and projections as bytes: at rest in memory, in a snapshot, and in a back-up. The same bytes in every process.

A state is one letter that names its type and then msgpack, its fields in order and without names: a field that is added
comes last and has a default. Dicts of a state are in the order in which events filled them, which every follower
shares; so a state that was decoded goes on exactly as it would have. A projection is what it cannot be rebuilt
without, in order; the listings are small beside the states, and rebuilding them would decode every stream.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from sluice.domain.cluster.state import Cluster
from sluice.domain.listings import MEMBERS, Members
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.fences import ScopeFences
from sluice.domain.scope.index import SCOPES, Scopes
from sluice.domain.scope.state import Scope
from sluice.domain.stream.state import DeletedStream, Stream
from sluice.domain.table.state import DeletedTable, Table
from sluice.domain.transaction.batch import Commits
from sluice.domain.transaction.index import StreamTransactions
from sluice.domain.transaction.prepared import PreparedRange
from sluice.domain.transaction.state import EndedTransaction, PreparedTransaction, Transaction


class RestoredPieces(msgspec.Struct, frozen=True, array_like=True):
    """What a restore has brought so far of a state that is too large for one record: pieces of its bytes, in order.

    No one sees it: a journal serves when all of it is restored.
    """

    pieces: tuple[bytes, ...]


STATES: dict[type, bytes] = {
    Stream: b"S",
    DeletedStream: b"s",
    Scope: b"O",
    ScopeFences: b"F",
    ReaderGroup: b"G",
    Table: b"K",
    DeletedTable: b"k",
    Transaction: b"T",
    EndedTransaction: b"t",
    PreparedTransaction: b"p",
    PreparedRange: b"P",
    Commits: b"C",
    Cluster: b"L",
    RestoredPieces: b"R",
}
"""Every type of state with its letter, which no other type ever gets."""

_pack = msgspec.msgpack.Encoder().encode
_unpack: dict[int, Callable[[bytes], Any]] = {
    letter[0]: msgspec.msgpack.Decoder(kind).decode for kind, letter in STATES.items()
}


def encode_state(state: Any) -> bytes:
    """See Model. Raises KeyError for what is no state."""
    return STATES[type(state)] + _pack(state)


def decode_state(value: bytes) -> Any:
    """See Model."""
    unpack = _unpack.get(value[0]) if value else None
    if unpack is None:
        raise ValueError(f"no type of state begins with {value[:1]!r}")
    return unpack(value[1:])


class _Scopes(msgspec.Struct, array_like=True):
    names: list[str]
    deletions: dict[str, int]


class _Members(msgspec.Struct, array_like=True):
    """What is in one scope: streams with their tags, by name; groups; tables."""

    scope: str
    streams: dict[str, tuple[str, ...]]
    groups: list[str]
    tables: list[str]


_unpack_scopes = msgspec.msgpack.Decoder(_Scopes).decode
_unpack_members = msgspec.msgpack.Decoder(list[_Members]).decode
_pack_transactions = msgspec.msgpack.Encoder(enc_hook=lambda ended: ended.rows).encode
_unpack_transactions = msgspec.msgpack.Decoder(StreamTransactions, dec_hook=lambda kind, rows: kind(rows)).decode


def encode_projection(name: str, projection: Any) -> bytes:
    """See Model."""
    if name == SCOPES:
        return _pack(_Scopes(projection.names, dict(sorted(projection.deletions.items()))))
    if name == MEMBERS:
        return _pack([_packed(scope, projection[scope]) for scope in sorted(projection)])
    if not isinstance(projection, StreamTransactions):
        raise TypeError(f"there is no encoding of the projection {name!r}")
    return _pack_transactions(projection)


def decode_projection(name: str, value: bytes) -> Any:
    """See Model."""
    if name == SCOPES:
        scopes = _unpack_scopes(value)
        return Scopes(scopes.names, scopes.deletions)
    if name == MEMBERS:
        return {one.scope: Members.of(one.streams, one.groups, one.tables) for one in _unpack_members(value)}
    return _unpack_transactions(value)


def _packed(scope: str, members: Members) -> _Members:
    streams = {name: members.tags.get(name, ()) for name in members.streams}
    return _Members(scope, streams, members.groups, members.tables)
