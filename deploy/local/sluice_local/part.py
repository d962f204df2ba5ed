"""A part: one process of a local system, described before it runs.

The supervisor works on these descriptions alone, so that a new program is one more description and no new code.
Descriptions are frozen; the functions in them may be called from any thread.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path

from sluice_local.ports import PortClaim
from sluice_local.probes import Probe


class StopRank(IntEnum):
    """Who is stopped first: the lowest number. Parts of one rank stop together."""

    SERVICE = 0
    SEGMENT_STORE = 1
    BOOKIE = 2
    STORE = 3


def nothing_to_prepare() -> None:
    """Most parts need no preparation."""


@dataclass(frozen=True, slots=True)
class Part:
    """One process of the system."""

    name: str
    command: tuple[str, ...]
    folder: Path
    """Where its data is and where it runs."""
    log: Path
    address: str
    """Where it is reached, for people."""
    claims: tuple[PortClaim, ...]
    probe: Probe
    stop_rank: StopRank
    may_be_late: bool = False
    """Whether the system counts as started without it: nothing else needs it. If it ends, the start has failed."""
    starts_after: tuple[str, ...] = ()
    """Parts that must be ready before this one is started."""
    files: Mapping[Path, str] = field(default_factory=dict)
    """Settings files, written before every start."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of the supervisor."""
    prepare: Callable[[], None] = nothing_to_prepare
    """Run before every start, when `starts_after` is ready; does only what is still to be done."""
