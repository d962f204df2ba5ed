"""What the events of a restore make of aggregates and projections."""

from collections.abc import Callable, Iterable
from typing import Any

from sluice.domain import listings
from sluice.domain.encoding import decode_state
from sluice.domain.ids import StreamId
from sluice.domain.restoring.events import AggregateRestored, NumbersMoved
from sluice.domain.scope import index as scopes
from sluice.domain.scope.fences import ScopeFences
from sluice.domain.scope.state import Scope
from sluice.domain.stream.state import DeletedStream
from sluice.domain.transaction import index
from sluice.domain.transaction.prepared import PreparedRange
from sluice.domain.transaction.state import EndedTransaction, Transaction


def _moved(state: ScopeFences | None, event: NumbersMoved) -> ScopeFences:
    state = state or ScopeFences()
    state.base = event.base
    return state


def _restored(_state: Any, event: AggregateRestored) -> Any:
    return decode_state(event.state)


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {NumbersMoved: _moved, AggregateRestored: _restored}


def project(projections: dict[str, Any], event: AggregateRestored, offset: int) -> Iterable[str]:
    """Bring the listings, and the index of the stream's transactions, up to date."""
    state = decode_state(event.state)
    match state:
        case Scope():
            scopes.restore(projections, state, offset)
        case Transaction():
            index.restore_live(projections, state.id.stream_id, state)
        case EndedTransaction():
            stream = StreamId.of(event.aggregate.partition(":")[2].rpartition("/")[0])
            index.restore_ended(projections, stream, state.uuid)
        case PreparedRange():
            index.restore_range(projections, state.id)
        case DeletedStream():
            index.note_stream_deleted(projections, event.aggregate.partition(":")[2])
        case _:
            listings.restore(projections, state)
    return ()
