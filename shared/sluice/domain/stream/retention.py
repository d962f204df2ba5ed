"""Retention as far as stream-workflows reports it: policies, where readers are, and sampled cuts with their sizes.

retention-spark decides from these reports where to truncate, and past rates are read off the samples. These are taken
periodically and may be lost. The
report that a policy is gone may not be lost, or data would be dropped that no policy covers any more. So a policy
counts as announced only once the journal records it. Rules: background-and-other-workflows 1.4 and 1.6.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from sluice.domain.config import RetentionPolicy
from sluice.domain.cut_order import lower_bound
from sluice.domain.decision import Decision, Reader
from sluice.domain.errors import InvalidArgumentError
from sluice.domain.ids import StreamId
from sluice.domain.segment import epoch_of
from sluice.domain.stream import cuts
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import Subscription
from sluice.domain.stream.queries import head
from sluice.domain.stream.state import Stream, StreamState, find_stream


class SizedCut(msgspec.Struct, frozen=True):
    """A cut, and how many bytes were ever written to the stream before it, truncated ones included."""

    cut: dict[int, int]
    size: int


class RetentionReport(msgspec.Struct, frozen=True):
    """What is true of a stream's retention; `at` in epoch ms, `id` follows from the rest.

    `policy` is None once there is none, the stream is sealed, or there is no such stream any more. `version` is the
    stream's in the journal: what is reported of a later one is true later; 0 if it is not known. `sample` is a cut over
    the tail as it was at `at`, None if only other things have changed. `subscribers` are those that have reported, of
    all `subscriptions`; `bound` is the furthest cut that none of them has yet to pass, None without them: it may be
    made of several of theirs, and how many bytes lie before it only the stream's history can tell. `ranges` has the key
    range of every segment named.
    """

    id: str
    by: str
    at: int
    scope: str
    stream: str
    creation_id: str
    policy: RetentionPolicy | None
    head: SizedCut
    sample: SizedCut | None = None
    subscribers: dict[str, SizedCut] = {}
    subscriptions: dict[str, Subscription] = {}
    bound: SizedCut | None = None
    ranges: dict[int, tuple[float, float]] = {}
    version: int = 0

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)


def is_sampled(stream: Stream) -> bool:
    """Whether cuts of the stream are of use: it has a policy, and nothing is written before it is there or once sealed.

    Those of a stream that only scales tell its past rates. A sample is not the first to tell of a retention policy:
    that there is none any more is reported only if one was announced.
    """
    passive = (StreamState.CREATING, StreamState.SEALED)
    if stream.state in passive:
        return False
    if stream.config.retention is None:
        return stream.config.scaling.is_by_load
    return stream.announced is not None


def is_announced(stream: Stream) -> bool:
    return stream.announced == stream.config.retention


def report(
    stream: Stream, tail: Mapping[int, int] | None, id: str, by: str, at: int, version: int = 0
) -> RetentionReport | None:
    """The report on the stream; `tail` is a cut over its end. None if that cut was overtaken by a truncation."""
    sample = None
    if tail is not None:
        sample = _sized(stream, tail)
        if sample is None:
            return None
    reported = {name: s.cut for name, s in sorted(stream.subscribers.items()) if s.cut}
    here = head(stream)
    at_head = SizedCut(here, stream.cut_size)
    # A subscriber behind the head has nothing left to wait for, and one of whom no size is known holds all there is.
    subscribers = {name: _sized(stream, cut) or at_head for name, cut in reported.items()}
    named = {*here, *(tail or ()), *(s for cut in reported.values() for s in cut)}
    segments = (stream.history.segment(s) for s in sorted(named))
    ranges = {s.id: (s.low, s.high) for s in segments}
    bound = lower_bound((s.cut for s in subscribers.values()), ranges)
    return RetentionReport(
        id=id,
        by=by,
        at=at,
        scope=stream.id.scope,
        stream=stream.id.name,
        creation_id=stream.creation_id,
        policy=stream.config.retention if stream.state is not StreamState.SEALED else None,
        head=at_head,
        sample=sample,
        subscribers=subscribers,
        subscriptions=stream.subscriptions,
        bound=(_sized(stream, bound) or at_head) if bound else None,
        ranges=ranges,
        version=version,
    )


def gone(stream: StreamId, id: str, by: str, at: int, version: int = 0) -> RetentionReport:
    """The report on a stream that was deleted; its version outlives it."""
    return RetentionReport(
        id=id,
        by=by,
        at=at,
        scope=stream.scope,
        stream=stream.name,
        creation_id="",
        policy=None,
        head=SizedCut({}, 0),
        version=version,
    )


def _sized(stream: Stream, cut: Mapping[int, int]) -> SizedCut | None:
    """The cut with the bytes before it; None if it lies before the head, or that is not known yet.

    It is not while a scale goes on: a reader may have come to the new segments before the sizes of the old ones count.
    """
    if any(epoch_of(segment) > stream.active for segment in cut):
        return None
    try:
        between = cuts.segments_between(stream, stream.cut, cut)
    except InvalidArgumentError:
        return None
    return SizedCut(dict(cut), stream.cut_size + cuts.size_between(stream, stream.cut, cut, between))


def record_announced(reader: Reader, id: StreamId, creation_id: str, policy: RetentionPolicy | None) -> Decision:
    """Nothing to note if that is known; a policy that has changed meanwhile has yet to be announced."""
    stream = find_stream(reader, id)
    if stream is None or stream.creation_id != creation_id or stream.announced == policy:
        return Decision()
    return Decision((ev.RetentionPolicyAnnounced(*id, policy=policy),))


def _announced(state: Stream, event: ev.RetentionPolicyAnnounced) -> Stream:
    state.announced = event.policy
    return state


EVOLVE: dict[type, Callable[[Any, Any], Any]] = {ev.RetentionPolicyAnnounced: _announced}
