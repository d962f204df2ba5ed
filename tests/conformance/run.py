"""One run of a case against one target: its names, what was answered so far, the way to ask.

Belongs to the event loop of its target; the steps of a case run one after the other.
"""

from dataclasses import dataclass, field
from typing import Any

from google.protobuf.message import Message

from conformance.answers import Refused
from conformance.target import Target


class Exactly(str):
    """A scope's name that is sent as it is; all others get the prefix of the run, so that no two runs meet."""


@dataclass(frozen=True, slots=True)
class OfLength:
    """A scope's name of so many characters."""

    length: int


ScopeName = str | OfLength


@dataclass(slots=True)
class Run:
    target: Target
    prefix: str
    answers: dict[str, Any] = field(default_factory=dict)
    """The latest answer of each RPC."""

    def scope(self, name: ScopeName) -> str:
        if isinstance(name, OfLength):
            return self.prefix.ljust(name.length, "x")
        return name if isinstance(name, Exactly) or not name else f"{self.prefix}{name}"

    def short(self, name: str) -> str:
        """A name as the case has it."""
        return name.removeprefix(self.prefix)

    def is_own(self, scope: str) -> bool:
        return scope.startswith(self.prefix)

    async def ask(self, rpc: str, request: Message) -> Message | Refused:
        return await self.target.ask(rpc, request)
