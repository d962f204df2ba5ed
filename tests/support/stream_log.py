"""A log with one stream for tests of the domain, and what its workflows come to."""

from typing import Any

from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.domain.decision import Reply
from sluice.domain.ids import StreamId
from sluice.domain.stream import decide, scale
from sluice.domain.stream.commands import CreateStream, ScaleStream, TruncateStream
from sluice.domain.stream.state import Stream, find_stream
from support.domain_log import Log

STREAM = StreamId("sc", "st")

Ranges = tuple[tuple[float, float], ...]


class StreamLog(Log):
    """The stream is there from the start, created by request `r`. `config` is what else its configuration holds."""

    def __init__(self, segments: int = 1, **config: Any) -> None:
        super().__init__(STREAM.scope)
        scaling = ScalingPolicy(min_segments=segments)
        self.decide(CreateStream(*STREAM, StreamConfig(scaling, **config)), request="r")
        self.apply(decide.finish_create(self, STREAM))

    @property
    def stream(self) -> Stream:
        stream = find_stream(self, STREAM)
        assert stream is not None
        return stream

    def start_scale(self, seals: tuple[int, ...], ranges: Ranges, at: int = 2000) -> Reply:
        return self.ask(ScaleStream(*STREAM, seals=seals, ranges=ranges, at=at))

    def end_scale(self, sizes: dict[int, int]) -> None:
        """The scale names its epoch, and ends with these sizes of what it sealed."""
        self.apply(scale.add_epoch(self, STREAM))
        self.apply(scale.finish_scale(self, STREAM, sizes))

    def scale(self, seals: tuple[int, ...], ranges: Ranges, at: int = 2000, size: int = 100) -> Reply:
        """From the request to the end; each sealed segment has that size."""
        reply = self.start_scale(seals, ranges, at)
        assert reply.status == "STARTED", reply
        self.end_scale(dict.fromkeys(seals, size))
        return reply

    def truncate(self, cut: dict[int, int]) -> None:
        assert self.decide(TruncateStream(*STREAM, cut=cut)).reply is None
        self.apply(decide.finish_truncate(self, STREAM))
