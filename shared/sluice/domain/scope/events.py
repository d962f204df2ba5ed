"""What became true of scopes, and of the fences of their deletion."""

import msgspec

from sluice.domain.names import (
    fences_aggregate,
    scope_aggregate,
)


class ScopeEvent(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    scope: str

    @property
    def aggregate(self) -> str:
        return scope_aggregate(self.scope)


class ScopeCreated(ScopeEvent, frozen=True):
    creation_id: str
    at: int


class ScopeDeletionStarted(ScopeEvent, frozen=True):
    """A view that shows this decides on no creation in the scope before its end.

    With `recursive` everything in it is being deleted, else it goes only if nothing is in it.
    """

    recursive: bool = False
    request: str | None = None
    at: int = 0


class ScopeDeleted(ScopeEvent, frozen=True):
    """Nothing is in the scope any more, and the scope is gone."""


class ScopeKept(ScopeEvent, frozen=True):
    """The scope was to be deleted, but something is in it."""


class FenceRaised(msgspec.Struct, frozen=True, tag=True, tag_field="type"):
    """A creation in the partition of `partition_key` counts only by a view that has folded that of `behind` so far."""

    partition_key: str
    behind: str
    position: int

    @property
    def aggregate(self) -> str:
        return fences_aggregate(self.partition_key)


Event = ScopeCreated | ScopeDeletionStarted | ScopeDeleted | ScopeKept | FenceRaised
