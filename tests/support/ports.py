"""Ports of which each process that shares the tests has its own: none is drawn by two that start at the same time."""

import os
from collections.abc import Iterable

from sluice_local.ports import FREE, find_block

_PROCESSES = 4
"""As many as share the tests, or more."""


def free_ports(count: int, chosen: Iterable[int] = ()) -> range:
    """Free ports in a row, below those that outgoing connections draw.

    What a system has `chosen` is free, too, as long as it does not run; the ports are others.
    """
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    size = len(FREE) // _PROCESSES
    first = number % _PROCESSES * size
    taken = set(chosen)
    while not taken.isdisjoint(ports := find_block(count, within=FREE[first : first + size])):
        pass
    return ports


def free_port() -> int:
    return free_ports(1).start
