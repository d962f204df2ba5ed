"""The cluster aggregate: which segment store runs which container, and which of our own services are alive.

Rules: segment-store-cluster A7. The assignment moves as few containers as balance allows, and no more often than a
set interval. Pure; the owner of the cluster's requests decides, and every process folds.
"""

import msgspec

from sluice.domain.decision import Reader
from sluice.domain.host import Host

CLUSTER = "cluster"

SILENCES_KEPT_MS = 3600 * 1000
MAX_SILENCES = 1_000


class Unresponsive(msgspec.Struct, array_like=True, frozen=True):
    """A container has not answered since then, epoch ms; `store` ran it at that time, None if none did."""

    since: int
    store: Host | None


class Silence(msgspec.Struct, array_like=True, frozen=True):
    """A container did not answer some member from `since` to `until`, epoch ms."""

    container: int
    since: int
    until: int


class Member(msgspec.Struct, array_like=True):
    """One instance of a service; `endpoints` maps a protocol to host:port.

    `since` is when its process was started, or when it joined if it does not say; epoch ms. `unresponsive` are the
    containers that do not answer it.
    """

    service: str
    instance: str
    endpoints: dict[str, str]
    since: int
    unresponsive: dict[int, Unresponsive] = {}


class Cluster(msgspec.Struct, array_like=True):
    """`containers` is empty until the first segment store came; `assigned_at` in epoch ms; members by instance.

    `drained` stores run containers only where no other is there. `load` is what was written to each container, in
    bytes a second, when an operator last had it measured.
    `away`: since when a service has no member any more, epoch ms. `silences` are those that ended, the last one last:
    MAX_SILENCES at most, and of those that ended `SILENCES_KEPT_MS` before the last one none.
    """

    containers: dict[int, Host] = {}
    hosts: tuple[Host, ...] = ()
    assigned_at: int = 0
    members: dict[str, Member] = {}
    drained: tuple[Host, ...] = ()
    load: dict[int, int] = {}
    away: dict[str, int] = {}
    silences: tuple[Silence, ...] = ()


def cluster_of(reader: Reader) -> Cluster:
    """The cluster as it is; an empty one before anything was recorded."""
    state = reader.get(CLUSTER)
    return state if isinstance(state, Cluster) else Cluster()


def uncovered(cluster: Cluster, count: int) -> tuple[int, ...]:
    """The containers of 0..count-1 that no host has been given."""
    return tuple(container for container in range(count) if container not in cluster.containers)
