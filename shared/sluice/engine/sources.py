"""Which requests are decided: the one rule against duplicates, as the fold keeps it for one journal partition.

For each topic there is a floor, below which every request is decided, and the decided ones at or above it. Floors only
grow. What is held is bounded by the requests under way.
"""

from collections.abc import Iterable, Mapping

from sluice.engine.capture import DecidedOfTopic
from sluice.engine.record import RequestPosition, Source

_TIDY_AT = 64


class _Topic:
    __slots__ = ("decided", "floor", "tidy_at")

    def __init__(self) -> None:
        self.floor: RequestPosition = (-1, 0)
        self.decided: set[RequestPosition] = set()
        self.tidy_at = _TIDY_AT


class DecidedSources:
    def __init__(self) -> None:
        self._topics: dict[str, _Topic] = {}

    def is_decided(self, source: Source) -> bool:
        topic = self._topics.get(source.topic)
        if topic is None:
            return False
        position = source.position
        return position < topic.floor or position in topic.decided

    def remembered(self) -> int:
        """How many decided requests are remembered one by one."""
        return sum(len(topic.decided) for topic in self._topics.values())

    def captured(self) -> list[DecidedOfTopic]:
        """All of it, in order; what was decided below a floor is dropped, for the floor says so."""
        return [
            DecidedOfTopic(name, topic.floor, sorted(position for position in topic.decided if position >= topic.floor))
            for name, topic in sorted(self._topics.items())
        ]

    @staticmethod
    def restored(topics: Iterable[DecidedOfTopic]) -> "DecidedSources":
        """What was captured."""
        sources = DecidedSources()
        for known in topics:
            topic = sources._of(known.topic)
            topic.floor, topic.decided = known.floor, set(known.decided)
            topic.tidy_at = max(_TIDY_AT, 2 * len(topic.decided))
        return sources

    def decide(self, source: Source) -> bool:
        """The request is decided from now on; whether it was not before."""
        topic = self._topics.get(source.topic) or self._of(source.topic)
        position, decided = (source.epoch, source.offset), topic.decided
        if position < topic.floor or position in decided:
            return False
        decided.add(position)
        if len(decided) > topic.tidy_at:
            topic.decided = {position for position in decided if position >= topic.floor}
            topic.tidy_at = max(_TIDY_AT, 2 * len(topic.decided))
        return True

    def raise_floors(self, floors: Mapping[str, RequestPosition]) -> None:
        for name, floor in floors.items():
            topic = self._topics.get(name) or self._of(name)
            if floor > topic.floor:
                topic.floor = floor

    def _of(self, name: str) -> _Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = _Topic()
        return topic
