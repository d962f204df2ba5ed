"""The commands of scopes."""

import msgspec

from sluice.domain.names import scope_aggregate


class ScopeCommand(msgspec.Struct, frozen=True, tag=True, tag_field="type", omit_defaults=True):
    """A command handled under the scope's key."""

    scope: str

    @property
    def key(self) -> str:
        return self.scope

    @property
    def aggregate(self) -> str:
        return scope_aggregate(self.scope)


class CreateScope(ScopeCommand, frozen=True):
    pass


class DeleteScope(ScopeCommand, frozen=True):
    """Delete the scope if nothing is in it; `creation_id` names the life that is meant, "" is whichever."""

    creation_id: str = ""


class DeleteScopeRecursive(ScopeCommand, frozen=True):
    """Fence the scope, then delete everything in it, then the scope; `creation_id` as in DeleteScope."""

    creation_id: str = ""


Command = CreateScope | DeleteScope | DeleteScopeRecursive
