"""A case: steps with the answers expected of each target.

Frozen values. Whatever a request needs that is known only while the case runs (names, earlier answers) is a function of
the `Run`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from google.protobuf.message import Message
from support.effort import effort
from support.wait import SOON_S

from conformance.answers import INVALID, UNKNOWN, WHY_INVALID, Refused
from conformance.run import Run

PEER, SLUICE = "peer", "sluice"
TARGETS = (PEER, SLUICE)

# The original takes minutes, and it answers today as it did when a case was written: by hand it is called each time,
# where changes are judged it is not.
CALLED_TARGETS = effort(TARGETS, (SLUICE,))

DEV = "dev"
"""`sluice dev`, which must answer all that SLUICE does."""

_NO_REFUSALS = ("SUCCESS", "STARTED", "IN_PROGRESS", "OK", "OPEN", "COMMITTING", "COMMITTED", "ABORTING", "ABORTED")


@dataclass(frozen=True, slots=True)
class Step:
    """One call, or one act on the data plane, and what it must give."""

    title: str
    act: Callable[[Run], Awaitable[Any]]
    expected: dict[str, Any]
    """By target; equal for all unless the step differs on purpose."""
    why: str = ""
    within_s: float = 0.0
    """Above 0 the step is repeated until it gives what is expected."""

    def gives(self, answer: object) -> "Step":
        """Every target must answer this."""
        return replace(self, expected=dict.fromkeys(TARGETS, answer))

    def until(self, answer: object, within_s: float = SOON_S) -> "Step":
        """Every target must come to answer this."""
        return replace(self.gives(answer), within_s=within_s)

    def differs(self, *, peer: object, sluice: object, why: str) -> "Step":
        """The targets answer differently, on purpose."""
        return replace(self, expected={PEER: peer, SLUICE: sluice}, why=why)

    def is_invalid(self) -> "Step":
        """What is wrong with the request stays so; the original has clients try again."""
        return self.differs(peer=UNKNOWN, sluice=INVALID, why=WHY_INVALID)

    @property
    def is_unhappy(self) -> bool:
        """Whether the answer expected of us is a refusal."""
        answer = self.expected[SLUICE]
        status = answer[0] if isinstance(answer, tuple) and answer and isinstance(answer[0], str) else answer
        if isinstance(status, str):
            return status.isupper() and status not in _NO_REFUSALS
        return isinstance(status, Refused) or status is False


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    steps: tuple[Step, ...]
    peer_not_called: str = ""
    """Why only we are called; empty if both are."""
    alone: bool = False
    """The original is not called at the same time as in another case that is to be alone."""

    @property
    def is_unhappy(self) -> bool:
        return any(step.is_unhappy for step in self.steps)

    @property
    def differences(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if step.why)


@dataclass(slots=True)
class Subject:
    """The cases on one subject; their names begin with it."""

    name: str
    alone: bool = False
    cases: list[Case] = field(default_factory=list)

    def case(self, name: str, *steps: Step, peer_not_called: str = "") -> None:
        """Add a case. Give `peer_not_called` where the original takes minutes or cannot be called."""
        self.cases.append(Case(f"{self.name}-{name}", steps, peer_not_called, self.alone))


def step(title: str, act: Callable[[Run], Awaitable[Any]], success: object = "SUCCESS") -> Step:
    """A step that does something; unless said otherwise it must succeed."""
    return Step(title, act, dict.fromkeys(TARGETS, success))


def call(
    rpc: str, build: Callable[[Run], Message], view: Callable[[Run, Any], Any], *, success: object = "SUCCESS"
) -> Step:
    """A step that calls an RPC; unless said otherwise it must succeed."""

    async def act(run: Run) -> Any:
        answer = await run.ask(rpc, build(run))
        run.answers[rpc] = answer
        return answer if isinstance(answer, Refused) else view(run, answer)

    return step(rpc, act, success)
