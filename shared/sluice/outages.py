"""Which segment containers do not answer, since when, and which segment store ran them: what is said of it anywhere.

The members that command segment stores probe every container, and the journal has what they found; it also has the
container map. From these two it follows, here and nowhere else. Pure functions.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from sluice.domain.cluster.state import Cluster, uncovered
from sluice.domain.host import Host

MAX_NAMED = 8
"""Of how many containers, and of how many instances, the words give the names."""


class Outage(msgspec.Struct, frozen=True):
    """What holds of a container that does not answer.

    `since` in epoch ms, 0 if it never did. `store` ran it then, None if none did; `has_gone` if that store is not among
    the hosts any more. `instances` are those that get no answer; none if no store runs it and none is known to have.
    """

    since: int
    store: Host | None
    has_gone: bool = False
    instances: tuple[str, ...] = ()

    @property
    def problem(self) -> str:
        """What is wrong with the container, as what is said of it."""
        return f"has {self._answered()}" if self.instances else "no segment store runs it"

    def of(self, containers: Sequence[int]) -> str:
        """The same as a sentence on these containers."""
        named = f"container{'s' * (len(containers) > 1)} {_some(containers)}"
        if not self.instances:
            return f"no segment store runs {named}"
        owner = f" of segment store {self.store}" if self.store is not None and not self.has_gone else ""
        return f"{named}{owner} {'has' if len(containers) == 1 else 'have'} {self._answered()}"

    def _answered(self) -> str:
        went = f", when segment store {self.store} went" if self.has_gone else ""
        since = datetime.fromtimestamp(self.since // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"not answered {_some(self.instances)} since {since}{went}"


def outages(cluster: Cluster, count: int) -> dict[int, Outage]:
    """Those of the containers 0..count-1 and of all that were probed, in order."""
    found: dict[int, Outage] = {}
    for instance, member in sorted(cluster.members.items()):
        for container, silence in member.unresponsive.items():
            gone = silence.store is not None and silence.store not in cluster.hosts
            own = Outage(silence.since, silence.store, gone, (instance,))
            before = found.get(container)
            if before is not None:
                first = min(before, own, key=lambda outage: outage.since)
                own = msgspec.structs.replace(first, instances=(*before.instances, instance))
            found[container] = own
    for container in uncovered(cluster, count):
        if container not in found or found[container].store is None:
            found[container] = Outage(cluster.assigned_at, None)
    return dict(sorted(found.items()))


def in_words(found: Mapping[int, Outage]) -> dict[int, str]:
    """What is wrong, by container; those of one store that do not answer the same instances share their words."""
    alike: dict[tuple[Host | None, bool, tuple[str, ...]], list[int]] = {}
    for container, outage in found.items():
        alike.setdefault((outage.store, outage.has_gone, outage.instances), []).append(container)
    words: dict[int, str] = {}
    for containers in alike.values():
        first = min((found[container] for container in containers), key=lambda outage: outage.since)
        words |= dict.fromkeys(containers, first.of(containers))
    return words


def problem(found: Mapping[int, Outage]) -> str | None:
    """All of it in one text; None if all is well."""
    return "; ".join(dict.fromkeys(in_words(found).values())) or None


def _some(names: Iterable[object]) -> str:
    all_names = [str(name) for name in names]
    more = len(all_names) - MAX_NAMED
    return f"{', '.join(all_names[:MAX_NAMED])}{f' and {more} more' if more > 0 else ''}"
