"""The commands of the cluster."""

import msgspec

from sluice.domain.host import Host

HEARTBEAT_S = 60.0
"""How often an instance sends a heartbeat that says nothing new."""


class ClusterCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    @property
    def key(self) -> str:
        return "cluster"

    @property
    def aggregate(self) -> str:
        return "cluster"


class Heartbeat(ClusterCommand, frozen=True):
    """A service instance is alive since `started_at` (epoch ms, 0 if it does not say).

    `endpoints` maps a protocol ("grpc", "rest") to host:port. `problems`: what it does without for the moment, by
    check, in words. `unresponsive`: the segment containers that did not answer its last probe. `leaving`: it is the
    last heartbeat, for the instance ends.
    """

    service: str
    instance: str
    endpoints: dict[str, str]
    started_at: int = 0
    problems: dict[str, str] = {}
    unresponsive: tuple[int, ...] = ()
    leaving: bool = False


class DrainStore(ClusterCommand, frozen=True):
    """The segment store shall run no container from now on, as long as another one is there."""

    store: Host


class UndrainStore(ClusterCommand, frozen=True):
    """The segment store takes its share of the containers from now on."""

    store: Host


class RebalanceContainers(ClusterCommand, frozen=True):
    """Containers shall be spread by this load, in bytes a second; one that is left out has none."""

    load: dict[int, int]


Command = Heartbeat | DrainStore | UndrainStore | RebalanceContainers
