"""Ports of which each process that shares the tests has its own: none is drawn by two that start at the same time."""

import os

from sluice_local.ports import FREE, find_block

_PROCESSES = 4
"""As many as share the tests, or more."""


def free_ports(count: int) -> range:
    """Free ports in a row, below those that outgoing connections draw."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    size = len(FREE) // _PROCESSES
    first = number % _PROCESSES * size
    return find_block(count, within=FREE[first : first + size])


def free_port() -> int:
    return free_ports(1).start
