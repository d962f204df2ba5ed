"""The index of a partition's scopes, in order: what their list is answered from, and where their deletions stand.

A projection, folded from the events of scopes, and without versions.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from sluice.domain import sorted_names
from sluice.domain.decision import ProjectionReader
from sluice.domain.scope.events import ScopeCreated, ScopeDeleted, ScopeDeletionStarted, ScopeKept
from sluice.domain.scope.state import Scope

SCOPES = "scopes"
"""The name of the projection; no stream's index has such a name, see `StreamId.transactions`."""


class Scopes(msgspec.Struct):
    """The scopes of a partition by name; `deletions` has the position behind the beginning of each deletion."""

    names: list[str] = []
    deletions: dict[str, int] = {}

    def after(self, name: str) -> Iterator[str]:
        """The scopes behind this name, in order; nothing may be folded meanwhile."""
        return sorted_names.behind(self.names, name)


def scopes_of(view: ProjectionReader) -> Scopes:
    found = view.projection(SCOPES)
    return found if isinstance(found, Scopes) else Scopes()


def _scopes(projections: dict[str, Any]) -> Scopes:
    found = projections.get(SCOPES)
    if found is None:
        found = projections[SCOPES] = Scopes()
    assert isinstance(found, Scopes)
    return found


def _created(projections: dict[str, Any], event: ScopeCreated, _offset: int) -> None:
    sorted_names.add(_scopes(projections).names, event.scope)


def _deletion_started(projections: dict[str, Any], event: ScopeDeletionStarted, offset: int) -> None:
    _scopes(projections).deletions[event.scope] = offset + 1


def _kept(projections: dict[str, Any], event: ScopeKept, _offset: int) -> None:
    _scopes(projections).deletions.pop(event.scope, None)


def _deleted(projections: dict[str, Any], event: ScopeDeleted, _offset: int) -> None:
    scopes = _scopes(projections)
    sorted_names.discard(scopes.names, event.scope)
    scopes.deletions.pop(event.scope, None)


def restore(projections: dict[str, Any], scope: Scope, offset: int) -> None:
    """List a scope of a back-up."""
    sorted_names.add(_scopes(projections).names, scope.name)
    if scope.workflow is not None:
        # Its deletion goes on: the fences are raised to where it stands in this journal.
        _scopes(projections).deletions[scope.name] = offset + 1


PROJECT: dict[type, Callable[[dict[str, Any], Any, int], None]] = {
    ScopeCreated: _created,
    ScopeDeletionStarted: _deletion_started,
    ScopeKept: _kept,
    ScopeDeleted: _deleted,
}
"""What each event does to the projection; it is given the offset of its record, too."""
