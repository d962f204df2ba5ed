"""What each event makes of the cluster."""

from collections.abc import Callable, Iterable
from typing import Any

from sluice.domain.cluster import events as ev
from sluice.domain.cluster.state import MAX_SILENCES, SILENCES_KEPT_MS, Cluster, Member, Silence, Unresponsive


def _assigned(state: Cluster | None, event: ev.ContainersAssigned) -> Cluster:
    state = state or Cluster()
    state.containers, state.hosts, state.assigned_at = event.containers, event.hosts, event.at
    return state


def _joined(state: Cluster | None, event: ev.MemberJoined) -> Cluster:
    state = state or Cluster()
    since = event.started_at or event.at
    if (before := state.members.get(event.instance)) is not None:
        _end_silences(state, before, before.unresponsive, event.at)
    state.members[event.instance] = Member(event.service, event.instance, event.endpoints, since)
    state.away.pop(event.service, None)
    return state


def _left(state: Cluster | None, event: ev.MemberLeft) -> Cluster:
    state = state or Cluster()
    gone = state.members.pop(event.instance, None)
    if gone is not None:
        _end_silences(state, gone, gone.unresponsive, event.at)
    if gone is not None and all(member.service != gone.service for member in state.members.values()):
        state.away[gone.service] = event.at
    return state


def _unresponsive(state: Cluster | None, event: ev.ContainersUnresponsive) -> Cluster:
    state = state or Cluster()
    if (member := state.members.get(event.instance)) is not None:
        before = member.unresponsive
        _end_silences(state, member, before.keys() - set(event.containers), event.at)
        member.unresponsive = {
            container: before.get(container) or Unresponsive(event.at, state.containers.get(container))
            for container in event.containers
        }
    return state


def _end_silences(state: Cluster, member: Member, containers: Iterable[int], at: int) -> None:
    """What the member said of these containers holds no more."""
    ended = [Silence(container, member.unresponsive[container].since, at) for container in sorted(containers)]
    if ended:
        recent = [silence for silence in state.silences if at - silence.until < SILENCES_KEPT_MS]
        state.silences = tuple([*recent, *ended][-MAX_SILENCES:])


def _drained(state: Cluster | None, event: ev.StoreDrained) -> Cluster:
    state = state or Cluster()
    state.drained = (*state.drained, event.store)
    return state


def _undrained(state: Cluster | None, event: ev.StoreUndrained) -> Cluster:
    state = state or Cluster()
    state.drained = tuple(store for store in state.drained if store != event.store)
    return state


def _measured(state: Cluster | None, event: ev.ContainerLoadMeasured) -> Cluster:
    state = state or Cluster()
    state.load = event.load
    return state


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    ev.ContainersAssigned: _assigned,
    ev.MemberJoined: _joined,
    ev.MemberLeft: _left,
    ev.ContainersUnresponsive: _unresponsive,
    ev.StoreDrained: _drained,
    ev.StoreUndrained: _undrained,
    ev.ContainerLoadMeasured: _measured,
}
