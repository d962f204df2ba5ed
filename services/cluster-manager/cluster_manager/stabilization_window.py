"""How long a change of the hosts must last before containers move for it.

A store that restarts within the time-out of its session finds its old node in ZooKeeper. When that session expires,
the node goes, and comes back a moment later: the store was never away. And of stores that start together, none should
be given what the next one will get. When all were away, the first that is back should not be given what the others had.
Pure; the time is that of the caller's clock, in seconds.
"""

from collections.abc import Iterable

from sluice.domain.host import Host

_MAX_WAITS = 4


class StabilizationWindow:
    """A host that left must be away for `settle_s`; no host has come for as long, or hosts came for four times that.

    After all had left, which may have been before this instance looked, a host must be away for `gather_s` from the
    first return on, until as many are there as before.
    """

    def __init__(self, settle_s: float, gather_s: float) -> None:
        self._settle_s = settle_s
        self._gather_s = max(settle_s, gather_s)
        self._since: dict[tuple[Host, bool], float] = {}
        self._all_left = True

    def forget(self) -> None:
        """The hosts are not known for now: what changed before may not have lasted."""
        self._since = {}
        self._all_left = True

    def wait_s(self, hosts: Iterable[Host], assigned: Iterable[Host], now: float) -> float:
        """How long to wait before containers are assigned to `hosts`, who had been to `assigned`; 0 if they may be."""
        present, before = set(hosts), set(assigned)
        if not present:
            self.forget()
            return 0.0
        self._all_left = self._all_left and len(present) < len(before)
        away_s = self._gather_s if self._all_left else self._settle_s
        changes = {(host, host in present) for host in present.symmetric_difference(before)}
        self._since = {change: self._since.get(change, now) for change in changes}
        came = [at for (_, there), at in self._since.items() if there]
        ends = [at + away_s for (_, there), at in self._since.items() if not there]
        if came:
            ends.append(min(max(came) + self._settle_s, min(came) + _MAX_WAITS * self._settle_s))
        return max(0.0, max(ends, default=now) - now)
