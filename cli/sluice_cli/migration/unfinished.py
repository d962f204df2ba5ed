"""What a controller was in the middle of, by what it left; and what becomes of that when it is brought along.

Rules: controller-metadata-store 6.2. Pure.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from sluice_cli.migration.invariants import is_created, name_of, state_of
from sluice_cli.migration.model import KeyValueTable, ReaderGroup, Stream, Thing
from sluice_cli.migration.records import NO_COMMITS, StreamState, ThingState, TransactionStatus
from sluice_cli.migration.to_stream import is_overtaken


class Unfinished(msgspec.Struct, frozen=True):
    """What of a thing is under way, and what happens to it."""

    of: str
    what: str
    then: str


def unfinished(thing: Thing) -> Iterator[Unfinished]:
    """What is under way of a thing of which `invariants.py` finds nothing that stops."""
    if not isinstance(thing, Stream):
        yield from _of_other(thing)
    elif not is_created(thing):
        yield _being_created(thing)
    else:
        found = [*_of_stream(thing), *_of_transactions(thing)]
        yield from (Unfinished(name_of(thing), what, then) for what, then in found)


def _being_created(thing: Thing) -> Unfinished:
    return Unfinished(name_of(thing), "its creation has not ended", "it is not brought along, and can be created")


def _of_other(thing: ReaderGroup | KeyValueTable) -> Iterator[Unfinished]:
    found = thing.metadata
    state = state_of(found)
    if state is ThingState.CREATING:
        yield _being_created(thing)
        return
    if state is ThingState.DELETING:
        yield Unfinished(name_of(thing), "it is being deleted", "that goes on")
    if isinstance(thing, ReaderGroup) and thing.metadata is not None:
        configuration = thing.metadata.configuration
        if configuration is not None and configuration.updating:
            yield Unfinished(name_of(thing), "a new configuration", "it takes effect")


def _of_stream(stream: Stream) -> Iterator[tuple[str, str]]:
    found = stream.metadata
    assert found is not None and found.state is not None
    state, at_work = found.state.state, False
    transition, commits = found.transition, found.committing
    if transition is not None and transition.sealed:
        at_work = True
        epoch = transition.active_epoch + 1
        if epoch > (found.current_epoch or 0):
            yield f"a scale to epoch {epoch}", "it is completed with these segments"
        elif is_overtaken(found):
            yield f"a scale to epoch {epoch}, which commits made", "it is forgotten: repeat it"
        else:
            yield f"a scale to epoch {epoch}, which is done", "it is forgotten"
    if found.configuration is not None and found.configuration.updating:
        at_work = True
        yield "a new configuration", "it takes effect"
    if found.truncation is not None and found.truncation.updating:
        at_work = True
        yield "a truncation", f"{len(found.truncation.to_delete)} segments are deleted, and it is completed"
    if commits is not None and commits != NO_COMMITS:
        at_work = True
        rolls = f", which makes epochs behind {commits.active_epoch}" if commits.active_epoch >= 0 else ""
        yield f"a batch of {len(commits.transactions)} commits{rolls}", "they are committed in this order"
    if state is StreamState.SEALING:
        yield "it is being sealed", "open transactions are aborted, and it is sealed"
    elif state not in (StreamState.ACTIVE, StreamState.SEALED) and not at_work:
        yield f"it is {state.name}, and nothing is left to do", "it becomes ACTIVE"


_OF_TRANSACTIONS = {
    TransactionStatus.OPEN: "their leases are extended",
    TransactionStatus.COMMITTING: "they are committed in the order in which that was asked for",
    TransactionStatus.ABORTING: "they are aborted",
}


def _of_transactions(stream: Stream) -> Iterator[tuple[str, str]]:
    count = Counter(one.status for found in stream.transactions.values() for one in found.values())
    for status, then in _OF_TRANSACTIONS.items():
        if count[status]:
            yield f"{count[status]} transactions are {status.name}", then
