"""How long a change of the hosts must last before containers move for it.

A store that restarts within the time-out of its session finds its old node in ZooKeeper. When that session expires,
the node goes, and comes back a moment later: the store was never away. And of stores that start together, none should
be given what the next one will get. Pure; the time is that of the caller's clock, in seconds.
"""

from collections.abc import Iterable

from sluice.domain.cluster.commands import Host

_MAX_WAITS = 4


class StabilizationWindow:
    """A host that left must be away for `settle_s`; no host has come for as long, or hosts came for four times that."""

    def __init__(self, settle_s: float) -> None:
        self._settle_s = settle_s
        self._since: dict[tuple[Host, bool], float] = {}

    def wait_s(self, hosts: Iterable[Host], assigned: Iterable[Host], now: float) -> float:
        """How long to wait before containers are assigned to `hosts`, who had been to `assigned`; 0 if they may be."""
        present = set(hosts)
        changes = {(host, host in present) for host in present.symmetric_difference(assigned)}
        self._since = {change: self._since.get(change, now) for change in changes}
        came = [at for (_, there), at in self._since.items() if there]
        ends = [at + self._settle_s for (_, there), at in self._since.items() if not there]
        if came:
            ends.append(min(max(came) + self._settle_s, min(came) + _MAX_WAITS * self._settle_s))
        return max(0.0, max(ends, default=now) - now)
