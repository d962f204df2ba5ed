"""Gateways in the simulation: the production handlers over a journal of their own; calls are made in their lives."""

import asyncio
from typing import Any

from simulation.lives import Living
from simulation.processes import Process
from support.judged_clients import RefusedError

from api_gateway.edge.errors import failure_of
from api_gateway.edge.reads import Reads
from api_gateway.edge.requests import Requests
from api_gateway.main import handlers
from api_gateway.settings import GatewaySettings

PATIENCE_S = 15.0
"""How long a client waits for an answer; what was begun may go on behind that."""


class NoMetadata:
    """What handlers ask a call for, and say beside its answer."""

    def invocation_metadata(self) -> None:
        return None

    def set_trailing_metadata(self, _metadata: Any) -> None:
        return None


class GatewayProcess(Process):
    name = "api-gateway"

    def serve(self) -> None:
        assert isinstance(self.settings, GatewaySettings)
        requests = Requests(self.runtime, self.settings.max_pending, self.settings.request_timeout_s)
        self._handlers = handlers(Reads(self.journal), requests, self.settings)

    async def call(self, rpc: str, request: Any) -> Any:
        """The answer. Raises RefusedError."""
        answered: asyncio.Future[Any] = self.system.loop.create_future()
        if self.life.living is not Living.DEAD:
            self.life.context.run(self.system.loop.create_task, self._answer(rpc, request, answered))
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await answered
        except TimeoutError:
            raise RefusedError("") from None

    async def _answer(self, rpc: str, request: Any, answered: "asyncio.Future[Any]") -> None:
        try:
            answer = await self._handlers[rpc](request, NoMetadata())  # type: ignore[arg-type]
            if not answered.done():
                answered.set_result(answer)
        except Exception as error:  # noqa: BLE001 - as at the boundary of every RPC
            failure = failure_of(error)
            if not answered.done():
                answered.set_exception(RefusedError(failure.code.name, failure.details))
