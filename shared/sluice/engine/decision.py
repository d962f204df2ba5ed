"""What decide functions take and give: a view to read, a context with time and ids, events and a reply to append.

Everything a decision depends on stands in the log: the state it read, guarded by versions, and the context, which
enters with the request. No clock, no randomness here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec


class Context(msgspec.Struct, frozen=True):
    """Times in epoch milliseconds; `request` is the id of the request that is being decided, if any.

    `appended_at` is when the broker appended the request, 0 without one; `now` is not before that. `caught_up` says
    that the views of other partitions which a refusal rests on hold all that was acknowledged before the request came.
    `measured` is what was measured outside for this decision, by what the domain calls it.
    """

    now: int
    request: str | None = None
    appended_at: int = 0
    caught_up: bool = False
    measured: Mapping[Any, int] = {}


class Decision(msgspec.Struct, frozen=True):
    """Events to append at once, and the reply that rides with them."""

    events: tuple[Any, ...] = ()
    reply: Any = None


class View(Protocol):
    """The view of a partition, which may lag behind the journal; reading it guards nothing.

    `next_offset` is the first offset not folded.
    """

    @property
    def partition_key(self) -> str: ...

    @property
    def next_offset(self) -> int: ...

    def get(self, aggregate: str) -> Any | None:
        """The state of an aggregate, None if there is none."""
        ...

    def projection(self, name: str) -> Any | None:
        """What is stored about several aggregates at once."""
        ...

    def everywhere(self) -> "Sequence[View]":
        """The views of all partitions."""
        ...


class Reader(Protocol):
    """Reads aggregates of one partition; whatever a decision has read is guarded by its version when appended."""

    @property
    def partition_key(self) -> str:
        """A key that belongs to this partition and to no resource."""
        ...

    def elsewhere(self, key: str) -> View:
        """The view of another key's partition."""
        ...

    def everywhere(self) -> Sequence[View]:
        """The views of all partitions."""
        ...

    def get(self, aggregate: str) -> Any | None:
        """The state of an aggregate, None if there is none."""
        ...

    def version(self, aggregate: str) -> int:
        """How many entries have changed an aggregate; reading this guards nothing."""
        ...

    def projection(self, name: str) -> Any | None:
        """What is stored about several aggregates at once; reading it guards nothing."""
        ...
