"""The commands that decisions become, with ids that follow from what was decided.

retention-spark may restart and decide the same again. It then sends the same command under the same id. Who decides on
the second one finds it done: a segment that is sealed, a head that is there already.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

from sluice.domain.config import RetentionPolicy, ScalingPolicy
from sluice.domain.ids import StreamId
from sluice.domain.policy.retention import RetentionDecision, RetentionState
from sluice.domain.policy.scaling import ScaleDecision, ScalingState
from sluice.domain.stream.commands import ScaleStream, TruncateStream


def truncation_id(id: StreamId, creation_id: str, cut: Mapping[int, int], policy: RetentionPolicy | None) -> str:
    rule = f"{policy.retention_type.value} {policy.minimum} {policy.maximum}" if policy is not None else ""
    return _id("truncate", *id, creation_id, rule, *(f"{s}@{at}" for s, at in sorted(cut.items())))


def scale_id(id: StreamId, creation_id: str, epoch: int, seals: Iterable[int], policy: ScalingPolicy) -> str:
    """What is refused because of one policy may be right by another."""
    rule = f"{policy.scale_type.value} {policy.target_rate} {policy.scale_factor} {policy.min_segments}"
    return _id("scale", *id, creation_id, str(epoch), rule, *(str(s) for s in sorted(seals)))


def truncation(state: RetentionState, decision: RetentionDecision, now: int) -> tuple[str, TruncateStream] | None:
    """The request's id and the command; None if the decision is not to truncate. `now` in epoch ms."""
    if decision.cut is None:
        return None
    id = truncation_id(state.stream_id, state.creation_id, decision.cut, state.policy)
    return id, TruncateStream(
        *state.stream_id, cut=decision.cut, policy=state.policy, subscriptions=state.subscriptions, at=now
    )


def scale(state: ScalingState, decision: ScaleDecision, now: int) -> tuple[str, ScaleStream] | None:
    """The request's id and the command; None if the decision is not to scale. `now` in epoch ms."""
    if not decision.seals:
        return None
    in_force = state.policy
    policy = ScalingPolicy(in_force.scale_type, in_force.target_rate, in_force.scale_factor, in_force.min_segments)
    id = scale_id(state.stream_id, state.creation_id, decision.epoch, decision.seals, policy)
    return id, ScaleStream(
        *state.stream_id,
        seals=decision.seals,
        ranges=decision.ranges,
        at=now,
        policy=policy,
        epoch=decision.epoch,
    )


def _id(kind: str, *parts: str) -> str:
    """No part holds a line break, so no two lists of parts have one id."""
    return f"{kind}-{blake2b(chr(10).join(parts).encode(), digest_size=16).hexdigest()}"
