"""Who is there, as a shared state, and how an observer finds out who is not any more. Pure.

No clock of one machine is ever compared with that of another: every member raises its counter at a steady pace, and
every observer counts its own looks since a counter last changed. An observer that was frozen itself sees all counters
changed at its next look, so it takes no one for gone.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec


class Gone(Exception):
    """The member was declared gone, by others, or never joined."""


class MembershipState(msgspec.Struct, frozen=True):
    """Never changed in place. `members` with the heartbeats each has made."""

    members: dict[str, int] = {}


class Joined(msgspec.Struct, frozen=True, tag=True):
    member: str


class Beaten(msgspec.Struct, frozen=True, tag=True):
    member: str


class Left(msgspec.Struct, frozen=True, tag=True):
    member: str


class DeclaredGone(msgspec.Struct, frozen=True, tag=True):
    """`by` is who says so, for people."""

    member: str
    by: str


Update = Joined | Beaten | Left | DeclaredGone
Decision = Callable[[MembershipState], Sequence[Update]]


def join(member: str) -> Decision:
    return lambda state: [] if member in state.members else [Joined(member)]


def beat(member: str) -> Decision:
    """Raises the counter. Raises Gone."""

    def decide(state: MembershipState) -> list[Update]:
        if member not in state.members:
            raise Gone(member)
        return [Beaten(member)]

    return decide


def leave(member: str) -> Decision:
    return lambda state: [Left(member)] if member in state.members else []


def declare_gone(silent: Mapping[str, int], by: str) -> Decision:
    """Removes members, each only if it still has this count: one that beats at the last moment stays."""
    return lambda state: [
        DeclaredGone(member, by) for member, beats in sorted(silent.items()) if state.members.get(member) == beats
    ]


def evolve(state: MembershipState, update: Update) -> MembershipState:
    """The state after an update."""
    match update:
        case Joined():
            return MembershipState(state.members | {update.member: 0})
        case Beaten():
            return MembershipState(state.members | {update.member: state.members[update.member] + 1})
        case Left() | DeclaredGone():
            return MembershipState(_without(state.members, (update.member,)))


def _without(members: Mapping[str, int], gone: Iterable[str]) -> dict[str, int]:
    return {member: beats for member, beats in members.items() if member not in gone}


class Observer:
    """Counts for each member the looks at which its counter had not changed; `missed` of them in a row: it is gone."""

    def __init__(self, missed: int) -> None:
        self._limit = missed
        self._seen: dict[str, tuple[int, int]] = {}

    def look(self, members: Mapping[str, int]) -> dict[str, int]:
        """The members that are gone, with their counts; to be called once per heartbeat with the newest state."""
        seen = {}
        for member, beats in members.items():
            before, missed = self._seen.get(member, (None, 0))
            seen[member] = (beats, missed + 1 if before == beats else 0)
        self._seen = seen
        return {member: beats for member, (beats, missed) in seen.items() if missed >= self._limit}
