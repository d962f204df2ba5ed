"""What became true of the cluster: container map and members."""

import msgspec

from sluice.domain.host import Host


class ClusterEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    @property
    def aggregate(self) -> str:
        return "cluster"


class ContainersAssigned(ClusterEvent, frozen=True):
    """Which segment store runs which container; `hosts` are all that were alive, also those without a container."""

    containers: dict[int, Host]
    hosts: tuple[Host, ...]
    at: int


class MemberJoined(ClusterEvent, frozen=True):
    """The instance is a member from now on, or with these endpoints, or has been started anew; times in epoch ms."""

    service: str
    instance: str
    endpoints: dict[str, str]
    at: int
    started_at: int = 0


class MemberLeft(ClusterEvent, frozen=True):
    instance: str
    at: int


class ContainersUnresponsive(ClusterEvent, frozen=True):
    """These containers, and no others, do not answer the member from now on; epoch ms."""

    instance: str
    containers: tuple[int, ...]
    at: int


class StoreDrained(ClusterEvent, frozen=True):
    """The segment store shall run no container from now on, as long as another one is there."""

    store: Host
    at: int


class StoreUndrained(ClusterEvent, frozen=True):
    """The segment store takes its share of the containers from now on."""

    store: Host
    at: int


class ContainerLoadMeasured(ClusterEvent, frozen=True):
    """What was written to each container, in bytes a second: containers are spread by it from now on."""

    load: dict[int, int]
    at: int


Event = (
    ContainersAssigned
    | MemberJoined
    | MemberLeft
    | ContainersUnresponsive
    | StoreDrained
    | StoreUndrained
    | ContainerLoadMeasured
)
