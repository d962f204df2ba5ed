"""How a request of this service is proposed to the journal."""

import asyncio

from sluice.engine.consumer import Delivery
from sluice.engine.decision import Decision
from sluice.engine.journal import Journal
from sluice.engine.proposer import Decide
from sluice.kafka.requests import Request


def propose(
    journal: Journal, request: Request, delivery: Delivery, decide: Decide
) -> "asyncio.Future[Decision | None]":
    """The decision on the request, in the name of who sent it; see Proposer."""
    return journal.propose(
        request.command.key,
        decide,
        request=request.id,
        origin=delivery.origin,
        appended_at=delivery.appended_at,
        principal=request.principal,
    )
