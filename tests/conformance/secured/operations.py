"""What an operation is, and what callers need for it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from google.protobuf.message import Message

from conformance.secured.users import READ, UPDATE, On, level

PASSES, UNAUTHENTICATED, DENIED = "passes", "unauthenticated", "denied"


@dataclass(frozen=True, slots=True)
class Needs:
    """A level on each of the resources; without resources nothing."""

    level: int = 0
    on: tuple[On, ...] = ()

    def may(self, user: str) -> bool:
        return all(level(user, on) >= self.level for on in self.on)


class Client(Protocol):
    """Sends a call with this header, and says what came of it: UNAUTHENTICATED, DENIED, or another status."""

    async def rpc(self, name: str, request: Message, authorization: str) -> str: ...

    async def http(self, method: str, path: str, body: Any, authorization: str) -> str: ...


@dataclass(frozen=True, slots=True)
class Operation:
    """`needs` is true of the original, whose standalone form has the flag off.

    `ours` is, where it differs, what Sluice needs, for the reason `why`; `with_flag` what it needs with the flag.
    """

    id: str
    send: Callable[[Client, str], Awaitable[str]]
    needs: Needs
    ours: Needs | None = None
    with_flag: Needs | None = None
    why: str = ""
    is_own: bool = False
    """Whether the original does not have it."""


def needs(level: int, *on: On) -> Needs:
    return Needs(level, on)


__all__ = ["DENIED", "PASSES", "READ", "UNAUTHENTICATED", "UPDATE", "Client", "Needs", "On", "Operation", "needs"]
