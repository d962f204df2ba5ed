"""Invariants of epochs: after every change a stream's history is whole, and in the end the stores agree with it."""

from simulation.invariants import check_history
from simulation.txn.model import StreamModel
from simulation.txn.plant import Plant
from simulation.violation import Violation
from support.histories import epochs_of, segments_of

from sluice.domain.ids import StreamId
from sluice.domain.model import JournalEntry
from sluice.domain.segment import segment_name
from sluice.domain.stream import cuts
from sluice.domain.stream import events as ev
from sluice.domain.stream.state import Stream, find_stream

_CHANGES = (ev.StreamEpochAdded, ev.StreamEpochsRolled, ev.StreamRolled, ev.StreamScaled, ev.StreamUpdated)


class EpochRules:
    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        plant.auditor.after.append(self._judge)

    def _judge(self, _partition: int, entry: JournalEntry, _at: int) -> None:
        for event in entry.events:
            if isinstance(event, _CHANGES):
                model = self._plant.auditor.model.streams[(event.scope, event.stream)]
                stream = _stream(self._plant, model)
                _as_the_model_says(stream, model)
                check_history(stream)

    def check(self) -> None:
        """To be called when nothing is under way any more."""
        for model in self._plant.auditor.model.streams.values():
            stream = _stream(self._plant, model)
            _as_the_model_says(stream, model)
            check_history(stream)
            _stored(self._plant, stream)


def _stream(plant: Plant, model: StreamModel) -> Stream:
    view = plant.truth.view(f"{model.scope}/{model.name.removeprefix('_MARK')}")
    stream = find_stream(view, StreamId(model.scope, model.name))
    if stream is None:
        raise Violation(f"{model.name} is gone")
    return stream


def _as_the_model_says(stream: Stream, model: StreamModel) -> None:
    mine = [(reference, sorted(s.id for s in segments)) for reference, segments in model.epochs]
    theirs = [(epoch.reference, sorted(epoch.segments)) for epoch in epochs_of(stream)]
    if mine != theirs or stream.active != model.active:
        raise Violation(f"{stream.id.name}: epochs {theirs}, active {stream.active}; {mine}, {model.active} are right")


def _stored(plant: Plant, stream: Stream) -> None:
    """Sealed segments are sealed at their noted size, active ones are open, what was passed is gone."""
    store = plant.stores
    sealed = stream.state.value == "SEALED"
    held = set(cuts.segments_between(stream, stream.cut, {}))
    for id in segments_of(stream):
        name = segment_name(*stream.id, id)
        stored = store.segments.get(name)
        if stored is not None and id not in held and stored.length == 0:
            # Created once more by a process that woke late: names are used for nothing else, so that is all it can be.
            continue
        if (stored is None) is (id in held):
            raise Violation(f"{name} is {'missing' if stored is None else 'left over'}")
        size = stream.history.sealed_sizes.get(id)
        is_replaced = stream.history.replaced_in(id) is not None
        # The sizes of what lies far behind the head are known no more.
        if is_replaced and id in stream.history.segments:
            length = stored.length if stored is not None else store.deleted.get(name)
            if size is None or size != length:
                raise Violation(f"{name} was sealed at {size}, its length is {length}")
        if stored is not None and stored.sealed is not (sealed or is_replaced):
            raise Violation(f"{name} is {'sealed' if stored.sealed else 'open'}")
