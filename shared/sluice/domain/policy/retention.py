"""Where a stream is truncated: a decision on the reports about it, and the reason for operators.

The minimum of a policy is a floor: what it covers is never dropped. Above it, data stay until every reader group that
subscribes has passed them; the maximum is a ceiling that overrides reader groups, not the floor (a maximum below the
minimum is the minimum). Of time it does not override one that is ahead of the floor over some keys and behind it over
others (1.8). The chosen cut must lie after the head and after the truncations requested before.

Reports may come twice, late and in any order. The newest one has policy, head and subscribers, every one of them may
bring a sampled cut; so under one type of policy the state depends on which reports came alone. A report of another
creation id counts if it is newer than all of this one; `retention.gone` ends the state in the same way. The newest is
the one with the latest version of the stream in the journal, whatever the reporters' clocks.

A state holds for a while after its newest report (`holds`). Who decides truncates nothing by one that does not: newer
reports, of another policy or of a reader group that has subscribed, may be on their way.
Rules: background-and-other-workflows 1.4 to 1.9.
"""

from bisect import bisect_left, bisect_right
from enum import Enum

import msgspec

from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.cut_order import Order, Ranges, compare, is_at_or_before
from sluice.domain.ids import StreamId
from sluice.domain.policy.internal import rule_of
from sluice.domain.policy.retention_set import RetentionSet, Sample, added, beyond
from sluice.domain.stream.commands import Subscription
from sluice.domain.stream.decisions import HOLDS_MS, unknown
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.domain.wording import amount, duration

PAUSE_MS = 30 * 60 * 1000
"""Between two truncations of a stream: Pravega's retention period."""

TRUNCATION_RETRY_MS = 60 * 60 * 1000
"""A truncation that was requested this long ago and has not been reported was refused."""


NO_MAXIMUM = 2**63 - 1
"""What a policy without a maximum has for one."""


class RetentionCode(Enum):
    """What a decision comes to; the last three truncate."""

    NO_POLICY = "no-policy"
    INTERNAL_STREAM = "internal-stream"
    NO_CUT = "no-cut"
    WITHIN_MINIMUM = "within-minimum"
    HELD_BY_READERS = "held-by-readers"
    AT_HEAD = "at-head"
    REQUESTED = "requested"
    PAUSED = "paused"
    BEYOND_MINIMUM = "beyond-minimum"
    CONSUMED = "consumed"
    BEYOND_MAXIMUM = "beyond-maximum"


class RetentionDecision(msgspec.Struct, frozen=True):
    """`target` is where to truncate, None for not at all; `reason` is a sentence for operators."""

    code: RetentionCode
    reason: str
    target: SizedCut | None = None

    @property
    def cut(self) -> dict[int, int] | None:
        return self.target.cut if self.target is not None else None


class RequestedTruncation(msgspec.Struct, frozen=True):
    """A truncation that was decided at `at`, epoch ms, with these subscriptions known."""

    target: SizedCut
    at: int
    subscriptions: dict[str, Subscription] = {}


class RetentionState(msgspec.Struct, frozen=True):
    """What is known of a stream's retention; `last_report` is (at, id) of the newest report.

    `version` is the stream's in that report; `received_at` is when the last one came, epoch ms, 0 if unknown.
    `bound` is the furthest cut that no subscriber has yet to pass; `ranges` has the key range of every segment named.
    """

    scope: str
    stream: str
    creation_id: str
    last_report: tuple[int, str]
    policy: RetentionPolicy | None
    head: SizedCut
    subscribers: dict[str, SizedCut] = {}
    subscriptions: dict[str, Subscription] = {}
    bound: SizedCut | None = None
    sampled: RetentionSet = RetentionSet()
    ranges: dict[int, tuple[float, float]] = {}
    requested: RequestedTruncation | None = None
    version: int = 0
    received_at: int = 0

    @property
    def stream_id(self) -> StreamId:
        return StreamId(self.scope, self.stream)


def tells_rates_only(state: RetentionState | None, report: RetentionReport) -> bool:
    """Whether it is a sample of a stream that has no retention policy, and had none before."""
    return report.sample is not None and report.policy is None and (state is None or state.policy is None)


def observe(state: RetentionState | None, report: RetentionReport) -> RetentionState:
    """What is known after the report."""
    if state is None or (report.creation_id != state.creation_id and _is_newer(report, state)):
        state = _begun(report)
    elif report.creation_id != state.creation_id:
        return state
    newest = _begun(report) if _is_newer(report, state) else state
    policy = newest.policy or report.policy
    known = state.sampled
    if report.sample is not None and policy is not None:
        sample = Sample(report.at, report.sample.size, report.sample.cut)
        if state.policy is None or state.policy.retention_type is not policy.retention_type:
            # Its cells may be of what the policy before measured.
            known = msgspec.structs.replace(known, level=0)
        known = added(known, sample, policy.retention_type)
    seen = msgspec.structs.replace(
        state,
        last_report=newest.last_report,
        version=newest.version,
        policy=newest.policy,
        head=newest.head,
        subscribers=newest.subscribers,
        subscriptions=newest.subscriptions,
        bound=newest.bound,
        sampled=beyond(known, newest.head.size),
    )
    return msgspec.structs.replace(seen, ranges=_ranges(state, seen, report))


def holds(state: RetentionState, now: int) -> bool:
    """Whether what was reported last is taken for true still; `now` in epoch ms."""
    return now <= state.last_report[0] + HOLDS_MS


def recorded(state: RetentionState, decision: RetentionDecision, now: int) -> RetentionState:
    """What is known once the decision is on its way."""
    if decision.target is None:
        return state
    return msgspec.structs.replace(state, requested=RequestedTruncation(decision.target, now, state.subscriptions))


def decide_retention(state: RetentionState, now: int, pause_ms: int = PAUSE_MS) -> RetentionDecision:
    """Where to truncate, if anywhere; `now` in epoch ms."""
    rule = rule_of(state.stream_id)
    if rule is not None:
        return RetentionDecision(RetentionCode.INTERNAL_STREAM, f"not truncated by a policy: {rule.value}")
    if state.policy is None:
        return RetentionDecision(RetentionCode.NO_POLICY, "not truncated: it has no retention policy, or is sealed")
    if not state.sampled.references():
        return RetentionDecision(RetentionCode.NO_CUT, "not truncated: no cut after the head has been sampled yet")
    choose = _by_time if state.policy.retention_type is RetentionType.TIME else _by_size
    return _checked(state, choose(_Question(state, state.policy, now)), now, pause_ms)


def decide_held(state: RetentionState, now: int, pause_ms: int = PAUSE_MS) -> RetentionDecision:
    """As `decide_retention`, but nothing is truncated once the state does not hold any more."""
    decision = decide_retention(state, now, pause_ms)
    if decision.target is None or holds(state, now):
        return decision
    why = f"not truncated: the newest report is older than {duration(HOLDS_MS)}"
    return RetentionDecision(RetentionCode.NO_CUT, why)


def numbers(state: RetentionState, decision: RetentionDecision) -> dict[str, int]:
    """What the decision rests on, for operators: the policy, the bytes that are held and those that it would keep.

    `unreadBytes` is how many the last reader group has yet to read. A maximum that is none is left out.
    """
    found: dict[str, int] = {}
    if state.policy is not None:
        unit = "Ms" if state.policy.retention_type is RetentionType.TIME else "Bytes"
        found[f"minimum{unit}"] = state.policy.minimum
        if state.policy.maximum < NO_MAXIMUM:
            found[f"maximum{unit}"] = state.policy.maximum
    cuts = state.sampled.references()
    if cuts:
        found["heldBytes"] = cuts[-1].size - state.head.size
        if decision.target is not None:
            found["keptBytes"] = cuts[-1].size - decision.target.size
        if state.subscribers:
            found["unreadBytes"] = cuts[-1].size - min(s.size for s in state.subscribers.values())
    return found


class _Question:
    """What the rules of both types read of the state at a moment; `written` is up to where the newest cut lies.

    `least` is the index of the newest cut that leaves the minimum (`min` in 1.5), -1 if there is none.
    """

    def __init__(self, state: RetentionState, policy: RetentionPolicy, now: int) -> None:
        self.minimum, self.maximum = policy.minimum, policy.ceiling
        self.now = now
        self.cuts = state.sampled.references()
        self.written = self.cuts[-1].size
        self.bound = state.bound
        self.ranges: Ranges = state.ranges
        self.reader, self.reader_at = _last_reader(state)

    def order(self, sample: Sample, bound: SizedCut) -> Order:
        """Where a sampled cut lies as seen from the subscribers' bound."""
        return compare(sample.cut, bound.cut, self.ranges)

    def passed(self, least: int, bound: SizedCut) -> Sample | None:
        """The newest cut, not after the one at `least`, that all subscribers have passed (1.9)."""
        at = bisect_left(
            self.cuts, True, hi=least + 1, key=lambda s: not is_at_or_before(s.cut, bound.cut, self.ranges)
        )
        return self.cuts[at - 1] if at > 0 else None

    def at_sample(self, code: RetentionCode, sample: Sample, why: str) -> RetentionDecision:
        age = duration(max(self.now - sample.at, 0))
        return RetentionDecision(code, f"truncated to the cut of {age} ago: {why}", SizedCut(sample.cut, sample.size))

    def at_bound(self, bound: SizedCut) -> RetentionDecision:
        why = f"truncated to where reader group {self.reader} stands, {self.reader_at}: all have read what is before"
        return RetentionDecision(RetentionCode.CONSUMED, why, bound)

    def forced(self, sample: Sample, why: str) -> RetentionDecision:
        why = f"{why}, although reader group {self.reader} stands {self.reader_at}"
        return self.at_sample(RetentionCode.BEYOND_MAXIMUM, sample, why)

    def at_passed(self, sample: Sample | None) -> RetentionDecision:
        if sample is not None:
            why = f"the last one that reader group {self.reader} has passed"
            return self.at_sample(RetentionCode.CONSUMED, sample, why)
        return self.held()

    def held(self) -> RetentionDecision:
        why = f"not truncated: reader group {self.reader} stands {self.reader_at}"
        return RetentionDecision(RetentionCode.HELD_BY_READERS, why)


def _by_size(question: _Question) -> RetentionDecision:
    """1.7, with the references of 1.5."""
    least = bisect_right(question.cuts, question.written - question.minimum, key=_size) - 1
    bound = question.bound
    retained = question.written - bound.size if bound is not None else 0
    if bound is not None and retained >= question.minimum:
        oldest = bisect_left(question.cuts, question.written - question.maximum, key=_size)
        most = question.cuts[min(oldest, least)] if least >= 0 else None
        if retained >= question.maximum and most is not None and question.written - most.size < retained:
            return question.forced(most, f"more than the maximum of {amount(question.maximum)} would be held")
        return question.at_bound(bound)
    if least < 0:
        held = amount(question.written - question.cuts[0].size)
        why = f"not truncated: {held} after the oldest cut, the minimum is {amount(question.minimum)}"
        return RetentionDecision(RetentionCode.WITHIN_MINIMUM, why)
    sample = question.cuts[least]
    if bound is not None and question.order(sample, bound) is not Order.BEFORE:
        return question.at_passed(question.passed(least, bound))
    why = f"{amount(question.written - sample.size)} after it are at least the minimum of {amount(question.minimum)}"
    return question.at_sample(RetentionCode.BEYOND_MINIMUM, sample, why)


def _by_time(question: _Question) -> RetentionDecision:
    """1.8, with the references of 1.5."""
    least = bisect_right(question.cuts, question.now - question.minimum, key=_at) - 1
    bound = question.bound
    if least < 0:
        why = f"not truncated: no cut is older than the minimum of {duration(question.minimum)}"
        return RetentionDecision(RetentionCode.WITHIN_MINIMUM, why)
    sample = question.cuts[least]
    where = question.order(sample, bound) if bound is not None else Order.BEFORE
    if bound is None or where is Order.BEFORE:
        return question.at_sample(RetentionCode.BEYOND_MINIMUM, sample, f"older than {duration(question.minimum)}")
    if where is Order.OVERLAPS:
        return question.at_passed(question.passed(least, bound))
    overdue = bisect_right(question.cuts, question.now - question.maximum, key=_at) - 1
    if overdue >= 0:
        over = question.cuts[overdue]
        why = f"what is before is older than the maximum of {duration(question.maximum)}"
        of_bound = compare(bound.cut, over.cut, question.ranges)
        if of_bound is Order.BEFORE:
            oldest = bisect_left(question.cuts, question.now - question.maximum, key=_at)
            return question.forced(question.cuts[min(oldest, least)], why)
        if of_bound is Order.OVERLAPS:
            return question.forced(over, why)
    return question.at_bound(bound)


def _checked(state: RetentionState, choice: RetentionDecision, now: int, pause_ms: int) -> RetentionDecision:
    """The choice, unless it has no effect or was requested before."""
    if choice.target is None:
        return choice
    code, why = None, ""
    requested = state.requested
    if requested is not None and unknown(requested.subscriptions, state.subscriptions):
        # Refused for that, unless it had been carried out before.
        requested = None
    if compare(choice.target.cut, state.head.cut, state.ranges) is not Order.AFTER:
        reader, reader_at = _last_reader(state)
        if choice.code is RetentionCode.CONSUMED:
            code, why = RetentionCode.HELD_BY_READERS, f"reader group {reader} stands {reader_at}"
        else:
            code, why = RetentionCode.AT_HEAD, "the head is there or further already"
    elif requested is not None:
        ago = now - requested.at
        is_after = compare(choice.target.cut, requested.target.cut, state.ranges) is Order.AFTER
        if not is_after and ago < TRUNCATION_RETRY_MS:
            code, why = RetentionCode.REQUESTED, f"requested {duration(max(ago, 0))} ago already"
        elif ago < pause_ms:
            left = duration(pause_ms - max(ago, 0))
            code, why = RetentionCode.PAUSED, f"truncated {duration(max(ago, 0))} ago, again in {left}"
    return choice if code is None else RetentionDecision(code, f"not truncated: {why}")


def _is_newer(report: RetentionReport, state: RetentionState) -> bool:
    """Whether the report is newer than all that were received before; 0 is no version."""
    reported, known = (report.at, report.id), state.last_report
    if report.version and state.version:
        return (report.version, *reported) > (state.version, *known)
    return reported > known


def _begun(report: RetentionReport) -> RetentionState:
    """The state that follows from the report alone, without its sample."""
    return RetentionState(
        scope=report.scope,
        stream=report.stream,
        creation_id=report.creation_id,
        last_report=(report.at, report.id),
        version=report.version,
        policy=report.policy,
        head=report.head,
        subscribers=report.subscribers,
        subscriptions=report.subscriptions,
        bound=report.bound,
    )


def _ranges(before: RetentionState, after: RetentionState, report: RetentionReport) -> dict[int, tuple[float, float]]:
    """The ranges of the segments that the state names: as a rule one cut more than before; else all are looked at."""
    kept, left = before.sampled.samples, after.sampled.samples
    named = _named_once(after)
    if (left is kept or len(left) == len(kept) + 1) and _named_once(before) <= named:
        named |= before.ranges.keys()
        if left is not kept and report.sample is not None:
            named |= report.sample.cut.keys()
    else:
        named.update(*(s.cut for s in left))
    known = {**before.ranges, **report.ranges}
    return {segment: known[segment] for segment in named}


def _named_once(state: RetentionState) -> set[int]:
    """The segments that the state names outside the sampled cuts."""
    cuts = [s.cut for s in (state.head, state.sampled.last, state.bound) if s is not None]
    cuts += [s.cut for s in state.subscribers.values()]
    if state.requested is not None:
        cuts.append(state.requested.target.cut)
    return set().union(*cuts)


def _last_reader(state: RetentionState) -> tuple[str, str]:
    """The subscriber furthest back of those that make the bound, and where it stands, for operators."""
    if state.bound is None:
        return "", ""
    bound = state.bound.cut.items()
    there = [name for name, s in state.subscribers.items() if not bound.isdisjoint(s.cut.items())]
    name = min(there or state.subscribers, key=lambda name: (state.subscribers[name].size, name))
    return name, f"{amount(state.subscribers[name].size - state.head.size)} after the head"


def _size(sample: Sample) -> int:
    return sample.size


def _at(sample: Sample) -> int:
    return sample.at
