"""Jobs that say who ran what, and when: containers by segment store, and the instances of our services.

Only the partition of the key `cluster` is read, from a moment on towards now; what does not fit into one call is in the
next one, from where this one says that it came.
"""

from collections.abc import Callable

import msgspec

from sluice.domain.cluster.events import MemberLeft
from sluice.domain.cluster.state import CLUSTER, Cluster, Member, cluster_of
from sluice.domain.host import Host
from sluice.domain.model import JournalRecord
from sluice.engine.fold import Outcome, PartitionView
from sluice.lookback.as_of import fold
from sluice.lookback.errors import TimeIsOverError
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.source import KafkaRecord, Span

MAX_RECORDS = 50_000

LEFT, MISSED, STARTED_ANEW = "it said that it leaves", "its heartbeats were missed", "it was started anew"


class HistoryQuestion(msgspec.Struct, frozen=True):
    """Epoch ms, both included; `to_ms` 0 is now."""

    from_ms: int
    to_ms: int = 0


class Holding(msgspec.Struct, frozen=True):
    """A store (host:port) ran a container from `since` to `to`, epoch ms; `to` None: to the end of what was searched.

    `since` of what held at the beginning of the interval is that beginning.
    """

    container: int
    store: str
    since: int
    to: int | None


class Membership(msgspec.Struct, frozen=True):
    """An instance was a member from `since` to `to`, epoch ms; `why` it was no longer, empty while `to` is None."""

    service: str
    instance: str
    since: int
    to: int | None
    why: str = ""


class Holdings(msgspec.Struct, frozen=True):
    """`searched_to` is the last moment that is taken in, epoch ms; `complete` if that is the end of the interval."""

    items: list[Holding]
    searched_to: int
    complete: bool


class Memberships(msgspec.Struct, frozen=True):
    """See Holdings."""

    items: list[Membership]
    searched_to: int
    complete: bool


Changed = Callable[[int, Cluster, frozenset[str]], None]
"""Receives each change of the cluster: when, how it is now, and the instances that left by themselves."""


class _Watching:
    """Looks over the fold of the cluster's partition."""

    def __init__(self, view: PartitionView, changed: Changed) -> None:
        self.view = view
        self.last_ms = 0
        self._changed = changed

    def before(self, _message: KafkaRecord, _record: JournalRecord) -> None:
        """Nothing is to be remembered."""

    def folded(self, message: KafkaRecord, record: JournalRecord, outcomes: list[Outcome]) -> None:
        self.last_ms = message.at
        for entry, outcome in zip(record.entries, outcomes, strict=True):
            if outcome is Outcome.COUNTED and any(event.aggregate == CLUSTER for event in entry.events):
                left = frozenset(event.instance for event in entry.events if isinstance(event, MemberLeft))
                # A request decided it, so the instance said so; else its heartbeats did not come.
                by_itself = left if entry.source is not None else frozenset[str]()
                self._changed(message.at, cluster_of(self.view), by_itself)


class _Holders:
    """Who runs each container, and since when; `ended` is over."""

    def __init__(self) -> None:
        self.ended: list[Holding] = []
        self._running: dict[int, tuple[Host, int]] = {}

    def changed(self, at: int, cluster: Cluster, _by_themselves: frozenset[str]) -> None:
        for container in sorted(self._running.keys() | cluster.containers.keys()):
            now, present = cluster.containers.get(container), self._running.get(container)
            if present is not None and present[0] != now:
                self.ended.append(_holding(container, *present, at))
                del self._running[container]
            if now is not None and container not in self._running:
                self._running[container] = now, at

    def all(self) -> list[Holding]:
        return [*self.ended, *(_holding(container, *one, None) for container, one in sorted(self._running.items()))]


def _holding(container: int, host: Host, since: int, to: int | None) -> Holding:
    return Holding(container, str(host), since, to)


class _Members:
    """Who is a member; `ended` is over."""

    def __init__(self) -> None:
        self.ended: list[Membership] = []
        self._present: dict[str, Member] = {}

    def changed(self, at: int, cluster: Cluster, by_themselves: frozenset[str]) -> None:
        for instance, member in sorted(self._present.items()):
            now = cluster.members.get(instance)
            if now is None:
                why = LEFT if instance in by_themselves else MISSED
                self.ended.append(Membership(member.service, instance, member.since, at, why))
            elif now.since != member.since:
                self.ended.append(Membership(member.service, instance, member.since, now.since, STARTED_ANEW))
        self._present = dict(cluster.members)

    def all(self) -> list[Membership]:
        present = (Membership(m.service, m.instance, m.since, None) for _, m in sorted(self._present.items()))
        return [*self.ended, *present]


def _follow(context: JobContext, question: HistoryQuestion, changed: Changed) -> tuple[int, bool]:
    """The last moment that is taken in, and whether it is the end of the interval."""
    to_ms = question.to_ms or context.now_ms
    partition = context.partition_of(CLUSTER)
    view = context.view_before(partition, question.from_ms - 1)
    span, start = context.journal([partition], until_ms=to_ms + 1)[partition], view.next_offset
    changed(question.from_ms, cluster_of(view), frozenset())
    watching = _Watching(view, changed)
    end = min(span.end, start + MAX_RECORDS)
    is_complete = end == span.end
    try:
        fold(context.source, [Span(span.topic, partition, start, end)], {partition: watching})
    except TimeIsOverError:
        is_complete = False
    return to_ms if is_complete else max(watching.last_ms, question.from_ms), is_complete


def _containers(context: JobContext, question: HistoryQuestion) -> Holdings:
    holders = _Holders()
    searched_to, complete = _follow(context, question, holders.changed)
    return Holdings(holders.all(), searched_to, complete)


def _members(context: JobContext, question: HistoryQuestion) -> Memberships:
    members = _Members()
    searched_to, complete = _follow(context, question, members.changed)
    return Memberships(members.all(), searched_to, complete)


CONTAINERS = Job("containers-history", HistoryQuestion, Holdings, _containers)
MEMBERS = Job("members-history", HistoryQuestion, Memberships, _members)
