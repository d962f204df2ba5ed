"""Histories of a reader group: updates drawn by chance, each of which its state takes."""

from random import Random

from sluice.domain.segment import segment_id, segment_name
from sluice.pravega.reader_group_config import GroupConfig
from sluice.pravega.reader_group_state import (
    AcquireSegment,
    AddReader,
    CheckpointReader,
    ClearCheckpointsBefore,
    CreateCheckpoint,
    GroupState,
    ReleaseSegment,
    RemoveOutstandingCheckpoints,
    RemoveReader,
    SegmentCompleted,
    Update,
    UpdateCheckpointPublished,
    UpdateDistanceToTail,
    UpdatingConfig,
)
from sluice_client.groups.state import RuleBroken, apply

_READERS = ("r1", "r2", "r3")
_CHECKPOINTS = ("a", "b", "c", "x_SILENT_", "y_SILENT_")


class History:
    """The updates of one group, each with the state that it makes; of two streams, whose segments' ids are the same."""

    def __init__(self, seed: int, length: int) -> None:
        self._random = Random(seed)
        self._count = 3
        first = {_segment(stream, number): self._random.randrange(50) for stream in "tu" for number in range(3)}
        config = GroupConfig(starts={"s/t": None, "s/u": None}, ends={"s/t": None, "s/u": None})
        state = GroupState(config, first, last_read=first)
        self.steps: list[tuple[Update, GroupState]] = [(state, state)]
        while len(self.steps) < length:
            update = self._drawn(self.steps[-1][1])
            try:
                self.steps.append((update, apply(self.steps[-1][1], update)))
            except RuleBroken:
                continue

    def _drawn(self, state: GroupState) -> Update:
        reader, checkpoint = self._random.choice(_READERS), self._random.choice(_CHECKPOINTS)
        held = state.assigned.get(reader, {})
        some = [*held, *state.unassigned, _segment("t", 99)]
        segment = self._random.choice(some)
        positions = {name: self._random.choice([-1, self._random.randrange(100)]) for name in held}
        kinds: list[Update] = [
            AddReader(reader),
            RemoveReader(reader, self._random.choice([{}, positions])),
            AcquireSegment(reader, segment),
            AcquireSegment(reader, segment),
            ReleaseSegment(reader, segment, self._random.randrange(100)),
            UpdateDistanceToTail(reader, self._random.randrange(10**6), positions),
            CreateCheckpoint(checkpoint),
            CheckpointReader(checkpoint, reader, positions),
            CheckpointReader(checkpoint, reader, positions),
            ClearCheckpointsBefore(checkpoint),
            UpdateCheckpointPublished(self._random.random() < 0.5),
            UpdatingConfig(self._random.random() < 0.5),
            self._completed(reader, segment, list(held)),
        ]
        if self._random.random() < 0.05:
            kinds = [RemoveOutstandingCheckpoints(), state, self.steps[0][0]]
        return self._random.choice(kinds)

    def _completed(self, reader: str, segment: str, held: list[str]) -> Update:
        """Split, or merged with another one that the reader holds, or the last."""
        stream = segment.split("/")[1]
        before = {_id(name) for name in [segment, *held[: self._random.randrange(2)]]}
        after = [_segment(stream, self._count + number) for number in range(self._random.randrange(3))]
        self._count += len(after)
        return SegmentCompleted(reader, segment, {name: set(before) for name in after})


def _segment(stream: str, number: int) -> str:
    return segment_name("s", stream, segment_id(0, number))


def _id(segment: str) -> int:
    return int(segment.rpartition("/")[2].partition(".")[0])
