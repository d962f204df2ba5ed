"""How calls are answered while something happens: each kind goes on by itself, one call behind the other."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Self

from harness import eventually

FINE = frozenset({"OK", "SUCCESS"})
PROMPT_S = 1.0
_ENOUGH = 3
_PAUSE_S = 0.05


class Answer(NamedTuple):
    """When a call began and ended, as time.monotonic says, and how."""

    began: float
    ended: float
    outcome: str


class Effect(NamedTuple):
    """What an event did: until when a call was not answered promptly, and the 99th percentile until all were again."""

    again_s: float
    p99_s: float
    failed: int
    of: int

    def __str__(self) -> str:
        return f"answered after {self.again_s:.1f} s, p99 {self.p99_s:.1f} s, {self.failed} of {self.of} calls failed"


class AnswerTimes:
    """`calls` are made while it is entered; each returns the name of its outcome."""

    def __init__(self, calls: Mapping[str, Callable[[], str]]) -> None:
        self._answers: dict[str, list[Answer]] = {name: [] for name in calls}
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._go_on, args=call) for call in calls.items()]

    def outcomes(self, name: str, since: float) -> set[str]:
        """Of the calls that have ended since then."""
        return {answer.outcome for answer in self._since(name, since)}

    def effect_of(self, since: float, deadline_s: float) -> Effect:
        """Wait until every call is answered; what happened since then."""
        eventually(lambda: all(self._is_answered(name, since) for name in self._answers), deadline_s, "answers")
        all_of_them = [answer for name in self._answers for answer in self._since(name, since)]
        late = [a for a in all_of_them if a.outcome not in FINE or a.ended - a.began > PROMPT_S]
        again = max((answer.ended for answer in late), default=since)
        took = sorted(answer.ended - answer.began for answer in all_of_them)
        failed = sum(answer.outcome not in FINE for answer in all_of_them)
        return Effect(again - since, took[-1 - len(took) // 100], failed, len(all_of_them))

    def _is_answered(self, name: str, since: float) -> bool:
        last = [answer for answer in self._since(name, since) if answer.began > since][-_ENOUGH:]
        return len(last) == _ENOUGH and all(answer.outcome in FINE for answer in last)

    def _since(self, name: str, since: float) -> list[Answer]:
        return [answer for answer in list(self._answers[name]) if answer.ended > since]

    def _go_on(self, name: str, call: Callable[[], str]) -> None:
        while not self._ends.wait(_PAUSE_S):
            began = time.monotonic()
            outcome = call()
            self._answers[name].append(Answer(began, time.monotonic(), outcome))

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()
