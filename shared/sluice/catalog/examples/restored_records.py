"""The records of a restore, in a journal that begins anew, and what a stream finds out of its segment stores."""

from sluice.catalog.examples import names as n
from sluice.catalog.examples.history import History
from sluice.domain.config import StreamConfig
from sluice.domain.encoding import encode_state
from sluice.domain.ids import StreamId
from sluice.domain.names import scope_aggregate
from sluice.domain.restoring.adapt import adapted
from sluice.domain.restoring.base import base_at
from sluice.domain.restoring.events import AggregateRestored, EpochsMoved, PieceRestored
from sluice.domain.scope.state import Scope
from sluice.domain.segment import Segment, segment_id
from sluice.domain.stream.decide import initial_segments
from sluice.domain.stream.events import StreamCreated, StreamCreationStarted, StreamRestored
from sluice.domain.stream.evolve import EVOLVE

BY = "sluice/backup"
_RETURNS = StreamId("depot", "returns")


def restored(history: History) -> None:
    """Behind the back-up the stream was scaled."""
    base = base_at(n.at(100), 0)
    history.append(100, BY, EpochsMoved(n.PARTITION, base))
    scope = Scope(_RETURNS.scope, n.request_id(0x40), n.at(0))
    history.append(100.1, BY, AggregateRestored(scope_aggregate(scope.name), encode_state(scope)))
    started = StreamCreationStarted(
        *_RETURNS,
        creation_id=n.request_id(0x41),
        config=StreamConfig(),
        created_at=n.at(1),
        segments=initial_segments(1, 0, 0),
        at=n.at(1),
    )
    stream = EVOLVE[StreamCreated](EVOLVE[StreamCreationStarted](None, started), StreamCreated(*_RETURNS))
    state = encode_state(adapted(stream, (base,), n.at(100.2), ()))
    history.append(100.2, BY, PieceRestored(_RETURNS.aggregate, state[:64]))
    history.append(100.3, BY, AggregateRestored(_RETURNS.aggregate, state[64:]))
    halves = (segment_id(1, 1), segment_id(1, 2))
    found = StreamRestored(
        *_RETURNS,
        at=n.at(101),
        base=base,
        found=halves,
        creates=(Segment(segment_id(base, 3), 0.0, 1.0),),
        sealed_sizes={0: 20_480, halves[0]: 4_096, halves[1]: 0},
    )
    history.append(101, n.WORKFLOWS, found)
