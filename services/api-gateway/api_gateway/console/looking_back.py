"""How routes look into the past: by jobs of the helper process, which end when the caller leaves."""

from typing import Annotated, TypeVar

import msgspec
from fastapi import Depends, Query, Request

from api_gateway.console.lookback import Lookback, while_caller_waits
from api_gateway.edge.rest.parts import ServedClock, served
from sluice.engine.ports import Clock
from sluice.lookback.jobs import Job
from sluice.lookback.times import moment_of, since_of

_TIME = "`-10m`, ISO 8601 (UTC unless it names a zone), or epoch ms"

At = Annotated[
    str | None, Query(max_length=40, description=f"As it was at this moment: {_TIME}. Left out: as it is now.")
]
From = Annotated[str, Query(alias="from", max_length=40, description=f"Nothing before this time: {_TIME}.")]
To = Annotated[str, Query(max_length=40, description=f"Nothing behind this time: {_TIME}.")]
Since = Annotated[str, Query(max_length=40, description=f"How far back to search: {_TIME}. Left out: an hour.")]

ArgumentsT = TypeVar("ArgumentsT", bound=msgspec.Struct)
ResultT = TypeVar("ResultT")


class LookingBack:
    """Has jobs done on behalf of one HTTP call."""

    def __init__(self, call: Request, lookback: Lookback, clock: Clock) -> None:
        self._call = call
        self._lookback = lookback
        self._clock = clock

    async def __call__(self, job: Job[ArgumentsT, ResultT], arguments: ArgumentsT) -> ResultT:
        """The job's result. Raises as `Lookback.run` does."""
        return await while_caller_waits(self._call, self._lookback.run(job, arguments))

    def moment(self, text: str) -> int:
        """Epoch ms, not a time to come. Raises InvalidTextError."""
        return moment_of(text, self._clock.now_ms())

    def time(self, text: str, otherwise: int = 0) -> int:
        """Epoch ms; `otherwise` for no text. Raises InvalidTextError."""
        return since_of(text, self._clock.now_ms()) if text else otherwise

    def since(self, text: str, ago_ms: int) -> int:
        """Epoch ms; for no text so long ago. Raises InvalidTextError."""
        return self.time(text) if text else max(0, self._clock.now_ms() - ago_ms)


async def _looking_back(
    request: Request, lookback: Annotated[Lookback, served(Lookback)], clock: ServedClock
) -> LookingBack:
    return LookingBack(request, lookback, clock)


LookBack = Annotated[LookingBack, Depends(_looking_back)]
