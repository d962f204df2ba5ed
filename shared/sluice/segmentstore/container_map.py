"""The container map and the hosts in it, as the bytes that segment stores read and write in ZooKeeper.

Both use Pravega's versioned envelope (segment-store-cluster A3 to A5): `00, version, revisions`, then per revision its
number, length and data; newer revisions and trailing bytes are skipped. Pure functions.
"""

import struct
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from sluice.segmentstore.host import Host
from sluice.segmentstore.wire.text import decode_text, encode_text

CONTAINER_MAP_NODE = "cluster/segmentContainerHostMapping"
"""Where the map stands, below `/pravega/<cluster name>`."""
HOSTS_NODE = "cluster/hosts"
"""Whose children are the live segment stores, below `/pravega/<cluster name>`; their payload is a `Host`."""

_T = TypeVar("_T")

_INT = struct.Struct(">i")
_SHORT = struct.Struct(">H")
_FIRST_REVISION = bytes((0, 0, 1, 0))
_ENVELOPE_BYTES = 3
_REVISION_BYTES = 5


class MalformedPayload(Exception):
    """The bytes are not the payload they should be."""


def encode_host(host: Host) -> bytes:
    """The payload of a host's node (A4)."""
    return _envelope(_text(host.address) + _INT.pack(host.port) + _text(host.endpoint_id))


def decode_host(data: bytes) -> Host:
    """The host in a node's payload (A4). Raises MalformedPayload."""
    return _decoded(data, _Reader.host)


def encode_container_map(containers: Mapping[Host, Collection[int]]) -> bytes:
    """The payload of the map's node (A5); hosts and containers in order, so that equal maps are equal bytes."""
    parts = [_compact(len(containers))]
    for host, ids in sorted(containers.items()):
        parts.append(encode_host(host))
        parts.append(_envelope(_compact(len(ids)) + b"".join(map(_INT.pack, sorted(ids)))))
    return _envelope(b"".join(parts))


def decode_container_map(data: bytes) -> dict[Host, frozenset[int]]:
    """Which containers each host has (A5); a host may have none. Raises MalformedPayload."""
    return _decoded(data, _Reader.container_map)


def _envelope(data: bytes) -> bytes:
    return _FIRST_REVISION + _INT.pack(len(data)) + data


def _text(text: str) -> bytes:
    raw = encode_text(text)
    return _SHORT.pack(len(raw)) + raw


def _compact(count: int) -> bytes:
    if count <= 0x7F:
        return bytes((count,))
    if count <= 0x3FFF:
        return struct.pack(">H", count | 0x8000)
    return struct.pack(">I", count | 0xC0000000)


class _Reader:
    """A position in a payload; every method reads one thing and moves behind it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def host(self) -> Host:
        end = self._open()
        host = Host(self._text(), self._int(), self._text())
        self._at = end
        return host

    def container_map(self) -> dict[Host, frozenset[int]]:
        end = self._open()
        containers = {}
        for _ in range(self._compact()):
            host = self.host()
            containers[host] = self._container_set()
        self._at = end
        return containers

    def _container_set(self) -> frozenset[int]:
        end = self._open()
        ids = frozenset(self._int() for _ in range(self._compact()))
        self._at = end
        return ids

    def _open(self) -> int:
        """Goes to the data of the first revision and returns where the whole envelope ends."""
        form, version, revisions = self._bytes(_ENVELOPE_BYTES)
        if form != 0 or version != 0:
            raise ValueError(f"format {form}, version {version}")
        if revisions == 0:
            raise ValueError("no revision")
        start = self._at + _REVISION_BYTES
        for revision in range(revisions):
            number = self._bytes(1)[0]
            if number != revision:
                raise ValueError(f"revision {number} where {revision} must be")
            length = self._int()
            if length < 0:
                raise ValueError(f"a revision of {length} bytes")
            self._bytes(length)
        end, self._at = self._at, start
        return end

    def _compact(self) -> int:
        first = self._bytes(1)[0]
        if first < 0x80:
            return first
        if first < 0xC0:
            return (first & 0x3F) << 8 | self._bytes(1)[0]
        return (first & 0x3F) << 24 | int.from_bytes(self._bytes(3), "big")

    def _text(self) -> str:
        return decode_text(self._bytes(_SHORT.unpack(self._bytes(2))[0]))

    def _int(self) -> int:
        value: int = _INT.unpack(self._bytes(4))[0]
        return value

    def _bytes(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise ValueError(f"{end - len(self._data)} bytes are missing")
        piece, self._at = self._data[self._at : end], end
        return piece


def _decoded(data: bytes, read: Callable[[_Reader], _T]) -> _T:
    try:
        return read(_Reader(data))
    except ValueError as error:
        raise MalformedPayload(f"{error} in {data.hex(' ', 4)}") from error
