"""Ports: who needs which, and whether they are free.

A port that is taken shows up late and in the words of whichever program wanted it. So every port is claimed with the
part and the setting it belongs to, and all claims are checked before the first process starts. Plain functions; the
answer is true for the moment of asking only.
"""

import errno
import random
import socket
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sluice_local.errors import PortTaken
from sluice_local.home import HOST

# Outgoing connections draw their ports from 32768 on; a port below that stays free between being found and being used.
FREE = range(20_000, 32_000)
_ATTEMPTS = 200

_LOOPBACK = ((socket.AF_INET, HOST), (socket.AF_INET6, "::1"))
_NO_FAMILY = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
"""The machine has no addresses of it, so no server listens there."""


@dataclass(frozen=True, slots=True)
class PortClaim:
    """A part wants to listen on a port that comes from a setting."""

    port: int
    part: str
    setting: str


def is_free(port: int) -> bool:
    """Whether a server could listen on the port now, in both families of addresses."""
    return all(_is_free(family, host, port) for family, host in _LOOPBACK)


def _is_free(family: socket.AddressFamily, host: str, port: int) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As the servers do: connections that are still closing are no obstacle, a listener is.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
            probe.listen(1)
    except OSError as error:
        if error.errno in (errno.EADDRINUSE, errno.EACCES):
            return False
        if error.errno not in _NO_FAMILY:
            raise
    return True


def require_free(claims: Sequence[PortClaim]) -> None:
    """Raise PortTaken, naming every port that is claimed twice or in use already."""
    problems = [*_claimed_twice(claims), *_in_use(claims)]
    if problems:
        raise PortTaken("\n".join(problems))


def find_block(count: int, source: random.Random | None = None, within: range = FREE) -> range:
    """Return free ports in a row, drawn at random so that two systems that start at once hardly meet.

    Where they must not meet at all, each looks `within` ports of its own.
    """
    source = source or random.Random()
    for first in source.sample(within[:-count], _ATTEMPTS):
        block = range(first, first + count)
        if all(is_free(port) for port in block):
            return block
    raise PortTaken(f"no {count} free ports in a row between {within.start} and {within.stop}")


def _claimed_twice(claims: Iterable[PortClaim]) -> list[str]:
    owners: dict[int, PortClaim] = {}
    problems = []
    for claim in claims:
        first = owners.setdefault(claim.port, claim)
        if first is not claim:
            problems.append(
                f"port {claim.port} is wanted by {first.part} ({first.setting}) and by {claim.part} ({claim.setting}): "
                f"change one of the two settings"
            )
    return problems


def _in_use(claims: Iterable[PortClaim]) -> list[str]:
    return [
        f"port {claim.port}, needed by {claim.part}, is in use by another process: free it, or set {claim.setting}"
        for claim in claims
        if not is_free(claim.port)
    ]
