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
from sluice.insight.shown import Shown, text
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


class HoldingModel(Shown):
    """A segment store ran a container."""

    container: int
    store: str = text("host:port of the segment store.")
    from_: int = text("Since when, epoch ms; the beginning of the interval, or later.")
    to: int | None = text("Until when; left out: to the end of what is searched.", default=None)


class ContainersHistory(Shown):
    """Who ran which container; a container that is left out for a while was run by no store then."""

    items: list[HoldingModel]
    searched_to: int = text("The last moment that is taken in, epoch ms.")
    complete: bool = text("Whether that is the end of the interval; if not, go on from there.")


class MembershipModel(Shown):
    """An instance of a service was a member."""

    service: str = text(examples=["stream-workflows"])
    instance: str
    from_: int = text("When it was started, epoch ms.")
    to: int | None = text("Until when; left out: to the end of what is searched.", default=None)
    why: str | None = text("Why it was no longer, in words.", default=None)


class MembersHistory(Shown):
    """Which instances were members."""

    items: list[MembershipModel]
    searched_to: int = text("The last moment that is taken in, epoch ms.")
    complete: bool = text("Whether that is the end of the interval; if not, go on from there.")


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
        self.ended: list[HoldingModel] = []
        self._running: dict[int, tuple[Host, int]] = {}

    def changed(self, at: int, cluster: Cluster, _by_themselves: frozenset[str]) -> None:
        for container in sorted(self._running.keys() | cluster.containers.keys()):
            now, present = cluster.containers.get(container), self._running.get(container)
            if present is not None and present[0] != now:
                self.ended.append(_holding(container, *present, at))
                del self._running[container]
            if now is not None and container not in self._running:
                self._running[container] = now, at

    def all(self) -> list[HoldingModel]:
        return [*self.ended, *(_holding(container, *one, None) for container, one in sorted(self._running.items()))]


def _holding(container: int, host: Host, since: int, to: int | None) -> HoldingModel:
    return HoldingModel(container=container, store=str(host), from_=since, to=to)


class _Members:
    """Who is a member; `ended` is over."""

    def __init__(self) -> None:
        self.ended: list[MembershipModel] = []
        self._present: dict[str, Member] = {}

    def changed(self, at: int, cluster: Cluster, by_themselves: frozenset[str]) -> None:
        for instance, member in sorted(self._present.items()):
            now = cluster.members.get(instance)
            if now is None:
                why = LEFT if instance in by_themselves else MISSED
                self.ended.append(_membership(member, at, why))
            elif now.since != member.since:
                self.ended.append(_membership(member, now.since, STARTED_ANEW))
        self._present = dict(cluster.members)

    def all(self) -> list[MembershipModel]:
        return [*self.ended, *(_membership(member, None) for _, member in sorted(self._present.items()))]


def _membership(member: Member, to: int | None, why: str | None = None) -> MembershipModel:
    return MembershipModel(service=member.service, instance=member.instance, from_=member.since, to=to, why=why)


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


def _containers(context: JobContext, question: HistoryQuestion) -> ContainersHistory:
    holders = _Holders()
    searched_to, complete = _follow(context, question, holders.changed)
    return ContainersHistory(items=holders.all(), searched_to=searched_to, complete=complete)


def _members(context: JobContext, question: HistoryQuestion) -> MembersHistory:
    members = _Members()
    searched_to, complete = _follow(context, question, members.changed)
    return MembersHistory(items=members.all(), searched_to=searched_to, complete=complete)


CONTAINERS = Job("containers-history", HistoryQuestion, ContainersHistory, _containers)
MEMBERS = Job("members-history", HistoryQuestion, MembersHistory, _members)
