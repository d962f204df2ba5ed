"""What the events of a restore make of aggregates and projections."""

from collections.abc import Callable
from typing import Any

from sluice.domain import listings
from sluice.domain.encoding import RestoredPieces, decode_state
from sluice.domain.restoring.events import AggregateRestored, EpochsMoved, PieceRestored
from sluice.domain.scope import index as scopes
from sluice.domain.scope.fences import ScopeFences
from sluice.domain.scope.state import Scope
from sluice.domain.stream.state import DeletedStream
from sluice.domain.transaction import index
from sluice.domain.transaction.prepared import PreparedRange
from sluice.domain.transaction.state import Transaction


def _moved(state: ScopeFences | None, event: EpochsMoved) -> ScopeFences:
    state = state or ScopeFences()
    state.base = event.base
    return state


def _pieces(state: Any) -> tuple[bytes, ...]:
    return state.pieces if isinstance(state, RestoredPieces) else ()


def _piece_restored(state: Any, event: PieceRestored) -> RestoredPieces:
    return RestoredPieces((*_pieces(state), event.piece))


def _restored(state: Any, event: AggregateRestored) -> Any:
    return decode_state(b"".join((*_pieces(state), event.state)))


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {
    EpochsMoved: _moved,
    PieceRestored: _piece_restored,
    AggregateRestored: _restored,
}


def project(projections: dict[str, Any], aggregate: str, state: Any, offset: int) -> None:
    """Bring the listings, and the index of the stream's transactions, up to date with a state that is brought back."""
    match state:
        case Scope():
            scopes.restore(projections, state, offset)
        case Transaction():
            index.restore_live(projections, state.id.stream_id, state)
        case PreparedRange():
            index.restore_range(projections, state.id)
        case DeletedStream():
            index.record_stream_deleted(projections, aggregate.partition(":")[2])
        case _:
            listings.restore(projections, state)
