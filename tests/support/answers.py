"""How the calls of clients were answered while something happened. Belongs to one event loop."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import grpc

from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice.engine.partition import partition_of
from support.controller import QUICK
from support.judged_clients import Call, RefusedError

PROMPT_S = 1.0
CALM_S = 3.0
DEADLINE_S = 8.0
_SLOWNESS = 2.0
_BEFORE = 300


@dataclass(eq=False)
class Answer:
    """When a call began and ended, as time.monotonic says, and how it failed; "" if it was answered.

    `partitions`: those of the journal that its stream and its scope are in.
    """

    gateway: str
    rpc: str
    partitions: frozenset[int]
    began: float
    ended: float = 0.0
    failure: str = ""

    @property
    def took_s(self) -> float:
        """So far, if it goes on."""
        return (self.ended or time.monotonic()) - self.began


Waits = Callable[[Answer], bool]
"""Whether a call cannot be answered before what happens is over."""


class Happened(NamedTuple):
    """What happened to a system, and when: its begin, its end, and when calls were prompt after it."""

    what: str
    began: float
    ended: float
    calm: float
    waits: Waits


class Effect(NamedTuple):
    """What it did to calls: until when some were late, counted from its begin and from its end; until then the 99th
    percentile; and how they failed.
    """

    from_begin_s: float
    from_end_s: float
    p99_s: float
    failures: Counter[str]
    of: int
    prompt_s: float
    """What took longer was late."""

    def __str__(self) -> str:
        late = f"{self.from_begin_s:.1f} s after its begin and {self.from_end_s:.1f} s after its end"
        failed = f"of {self.of} failed: {named(self.failures)}"
        return f"calls took over {self.prompt_s:.1f} s until {late}; p99 {self.p99_s:.1f} s; {failed}"


def named(failures: Counter[str]) -> str:
    return ", ".join(f"{count} {code}" for code, count in failures.most_common()) or "none"


@dataclass
class Answers:
    """Of a system whose journal has so many partitions.

    A call is late if it took longer than `prompt_s`, or was not answered. That is a second, or so much more as the
    machine is slow: twice what hardly a call took while nothing happened.
    """

    partitions: int
    prompt_s: float = PROMPT_S
    ended: list[Answer] = field(default_factory=list)
    _open: set[Answer] = field(default_factory=set)
    _undisturbed: list[float] = field(default_factory=list)

    def caller(self, address: str) -> Call:
        """Makes calls on a gateway, which are watched."""
        stub = ControllerServiceStub(grpc.aio.insecure_channel(address, options=QUICK))

        async def call(rpc: str, request: Any) -> Any:
            answer = Answer(address, rpc, self._partitions_of(request), time.monotonic())
            self._open.add(answer)
            try:
                return await getattr(stub, rpc)(request, timeout=DEADLINE_S, wait_for_ready=True)
            except grpc.aio.AioRpcError as error:
                refusal = RefusedError(error.code().name, error.details() or "")
                answer.failure = "" if refusal.is_answer else refusal.code
                raise refusal from None
            finally:
                answer.ended = time.monotonic()
                self._open.discard(answer)
                self.ended.append(answer)

        return call

    def is_calm(self, since: float) -> bool:
        """Whether for a while, which began later, no call has been late."""
        began = time.monotonic() - CALM_S
        recent = self._since(began)
        is_prompt = bool(recent) and not any(self._is_late(answer) for answer in (*recent, *self._open))
        return began > since and is_prompt

    def nothing_happened(self, seconds: float) -> None:
        """In these last seconds."""
        self._undisturbed = [*self._undisturbed, *(a.took_s for a in self._since(time.monotonic() - seconds))][
            -_BEFORE:
        ]
        self.prompt_s = max(PROMPT_S, _SLOWNESS * _percentile(self._undisturbed, 95))

    def effect(self, happened: Happened) -> Effect:
        calls = [answer for answer in self._since(happened.began) if answer.ended <= happened.calm]
        waiting = [a for a in calls if a.began < happened.ended and happened.waits(a)]
        before = [a for a in calls if a.began < happened.ended and a not in waiting]
        after = [a for a in calls if a.began >= happened.ended]
        again = self._last_late(before, happened.began)
        again_after = self._last_late([*after, *waiting], happened.ended)
        p99 = _percentile([a.took_s for a in (*before, *after) if a.began <= max(again, again_after)], 99)
        failures = Counter(a.failure for a in calls if a.failure)
        since = again - happened.began, max(0.0, again_after - happened.ended)
        return Effect(*since, p99, failures, len(calls), self.prompt_s)

    def _is_late(self, answer: Answer) -> bool:
        return bool(answer.failure) or answer.took_s > self.prompt_s

    def _last_late(self, calls: Iterable[Answer], default: float) -> float:
        return max((answer.ended for answer in calls if self._is_late(answer)), default=default)

    def _since(self, since: float) -> list[Answer]:
        """Those that have ended since then."""
        recent = []
        for answer in reversed(self.ended):
            if answer.ended <= since:
                break
            recent.append(answer)
        return recent

    def _partitions_of(self, request: Any) -> frozenset[int]:
        while not hasattr(request, "scope"):
            request = request.streamInfo
        scope = getattr(request.scope, "scope", request.scope)
        names = {scope, f"{scope}/{request.stream}"} if hasattr(request, "stream") else {scope}
        return frozenset(partition_of(name, self.partitions) for name in names)


def _percentile(seconds: list[float], number: int) -> float:
    return sorted(seconds)[-1 - len(seconds) * (100 - number) // 100] if seconds else 0.0
