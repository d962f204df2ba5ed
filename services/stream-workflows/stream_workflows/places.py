"""Requests that come again: delivered once more after a crash, when much has happened since.

What holds an offset back holds all behind it, for as long as it takes, so a request may come again long after its
answer is forgotten, and its name may be that of another thing by then. Requests of a key are decided in the order of
their topic, one after the other; so one that stands where the aggregate has been already was decided before.
"""

import logging

import msgspec

from sluice.domain.commands import CancelWorkflow, Command, KickWorkflow
from sluice.domain.decision import Context
from sluice.journal.partition_view import GuardedReader
from sluice.journal.record import Place
from sluice.messaging.keyed_consumer import Delivery

log = logging.getLogger(__name__)


def place_of(command: Command, delivery: Delivery, partition: int) -> Place | None:
    """Where the request stands in the `partition` of its key.

    None for one that somebody has put under another key or elsewhere, or that passes the queue of its key by: a
    cancellation names the workflow that it means, and a kick too many does no harm.
    """
    message = delivery.message
    if message is None or isinstance(command, KickWorkflow | CancelWorkflow):
        return None
    if delivery.key != command.key or delivery.partition != partition:
        return None
    return Place(message.offset() or 0, message.timestamp()[1])


def come_again(reader: GuardedReader, command: Command, context: Context, place: Place | None) -> Context:
    """The context that says whether the request at that place has come before."""
    if place is None or not reader.has_come(command.aggregate, place):
        return context
    log.info("request has come again", extra={"request": context.request, "key": command.key, "offset": place.offset})
    return msgspec.structs.replace(context, again=True)
