"""The scope fences of a partition: how far other partitions must be folded before something is created in this one.

A creation reads its scope in the view of the scope's partition, which may lag, and no record can guard an aggregate of
another partition. So a scope that is being deleted has the fences of every partition raised to the position behind
`ScopeDeletionStarted`. A creation guards the fences of its partition, and is decided only by a view that has folded the
scope's partition up to the position there. So when a view shows a partition's fence raised, it shows everything that
will ever have been created there without knowing of the deletion.
Positions only grow: raising a fence late, or once more, does nothing, and none is ever lifted.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from sluice.domain.decision import Context, Decision, Reader, View, refuse
from sluice.domain.errors import ScopeBusyError, ViewBehindError
from sluice.domain.names import fences_aggregate
from sluice.domain.scope import events as ev
from sluice.domain.scope.index import scopes_of
from sluice.domain.scope.state import find_scope, is_deleted_plainly, is_deleted_recursively
from sluice.domain.status import Status


class ScopeFences(msgspec.Struct, array_like=True):
    """`positions` has for each partition, by its key, what must have been folded of it."""

    positions: dict[str, int] = {}
    base: int = 0
    """Where the epochs of what is created here begin: behind all that were given out before a restore."""


class Fence(msgspec.Struct, frozen=True):
    """What is created in the partition of `key` must have folded that of `behind` up to `position`."""

    key: str
    behind: str
    position: int

    def is_raised(self, fences: Any) -> bool:
        """Whether fences of this state are there, or beyond."""
        return isinstance(fences, ScopeFences) and fences.positions.get(self.behind, 0) >= self.position

    def decide(self, reader: Reader, _context: Context) -> Decision:
        """Raise it; nothing if it is there."""
        if self.is_raised(reader.get(fences_aggregate(self.key))):
            return Decision()
        return Decision((ev.FenceRaised(partition_key=self.key, behind=self.behind, position=self.position),))


def missing_scope(reader: Reader, scope: str, context: Context) -> Decision | None:
    """The refusal of a creation in a scope that is not there or goes with all that is in it; None if it is there.

    What the reader's partition says of fences is guarded from here on. Raises ViewBehindError, ScopeBusyError.
    """
    view = reader.elsewhere(scope)
    fences = reader.get(fences_aggregate(reader.partition_key))
    position = fences.positions.get(view.partition_key, 0) if isinstance(fences, ScopeFences) else 0
    if view.next_offset < position:
        raise ViewBehindError((view.partition_key,), position)
    found = find_scope(view, scope)
    if found is None or is_deleted_recursively(found):
        if not context.caught_up:
            raise ViewBehindError((view.partition_key,))
        return refuse(Status.SCOPE_NOT_FOUND, "" if found is None else "the scope is being deleted")
    if is_deleted_plainly(found):
        raise ScopeBusyError(scope)
    return None


def base_of(reader: Reader) -> int:
    """The first epoch of what is created in the reader's partition; guarded from here on."""
    fences = reader.get(fences_aggregate(reader.partition_key))
    return fences.base if isinstance(fences, ScopeFences) else 0


def fences_to_raise(reader: View, scope: str) -> list[Fence]:
    """What has to be raised before the end of a scope's deletion, in the order of the partitions."""
    position = scopes_of(reader).deletions.get(scope, 0)
    return [Fence(view.partition_key, reader.partition_key, position) for view in reader.everywhere()]


def all_raised(reader: View, scope: str) -> bool:
    """Whether the views show them raised: then nothing can come into the scope that they do not show."""
    views = {view.partition_key: view for view in reader.everywhere()}
    return all(f.is_raised(views[f.key].get(fences_aggregate(f.key))) for f in fences_to_raise(reader, scope))


def _raised(state: ScopeFences | None, event: ev.FenceRaised) -> ScopeFences:
    state = state or ScopeFences()
    state.positions[event.behind] = event.position
    return state


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {ev.FenceRaised: _raised}
