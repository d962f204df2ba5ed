"""What another policy would have decided: the recorded reports replayed to the same rules, in their own time.

Truncations are taken for carried out, so that each one is decided on the head that the ones before it have left. What
scales would have come to cannot be known: reports go on describing the stream as it was, and segments that are hot
or cold by the target they had. So of a scaling policy the minimum, the factor and the cool-down can be replaced, and
the outcome holds up to the first difference.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import msgspec

from sluice.domain.config import RetentionPolicy
from sluice.domain.cut_order import is_at_or_before
from sluice.domain.ids import StreamId
from sluice.domain.policy.retention import RetentionState
from sluice.domain.stream.retention import RetentionReport, SizedCut
from sluice.domain.stream.traffic import ScaleReport
from sluice.exceptions import in_words
from sluice.policies.reported import HistoryRow, LastReported, history_row, is_news
from sluice.policies.rules import RetentionRule, Rule, Rules, ScaleRule, Verdict

log = logging.getLogger(__name__)


class OtherScaling(msgspec.Struct, frozen=True):
    """What is to be another in a scaling policy; None: as it was."""

    min_segments: int | None = None
    scale_factor: int | None = None
    cooldown_ms: int | None = None


Policy = RetentionPolicy | OtherScaling


class Record(msgspec.Struct, frozen=True):
    """A report as it was recorded, `at` epoch ms."""

    at: int
    value: bytes


class Decided(msgspec.Struct, frozen=True):
    """A decision of a replay that is news, at `at` (epoch ms)."""

    at: int
    stream: StreamId
    verdict: Verdict


class Replay(ABC):
    """Replays one stream's reports to a rule; `observe` and `end` in the order of time."""

    def __init__(self, rule: Rule) -> None:
        self.decided: list[Decided] = []
        self._rule = rule
        self._decoder = msgspec.json.Decoder(rule.report_type)
        self._state: Any = None
        self._last_reported: LastReported | None = None
        self._now = 0

    @property
    def begun(self) -> bool:
        """Whether a report was there that can be decided on: a sample without a policy tells past rates only."""
        return self._state is not None

    def observe(self, record: Record) -> None:
        self.end(record.at)
        self._now = record.at
        before = self._state
        try:
            report = self._changed(self._decoder.decode(record.value))
            self._state = self._rule.observe(before, report, record.at)
            if self._state is not None:
                self._decide()
        except Exception as error:  # noqa: BLE001 - as the query: it makes a dead letter of it and keeps the state
            log.warning("a report is left out: %s", in_words(error))
            self._state = before

    def end(self, at: int) -> None:
        """Decide whenever the rule wants to before that time."""
        while self._state is not None:
            wake_at = self._rule.wake_at(self._state, self._now)
            if wake_at is None or wake_at >= at:
                return
            self._now = max(wake_at, self._now + 1)
            self._decide()

    def _decide(self) -> None:
        verdict, self._state = self._rule.decide(self._state, self._now)
        if is_news(self._last_reported, verdict, self._now):
            self._last_reported = LastReported(verdict.code, verdict.reason, self._now)
            self.decided.append(Decided(self._now, self._state.stream_id, verdict))
        if verdict.request is not None:
            self._state = self._carried_out(self._state)

    def rows(self) -> list[HistoryRow]:
        """What was decided, as the history has it."""
        return [history_row(self._rule.kind, one.stream, one.verdict, one.at) for one in self.decided]

    @abstractmethod
    def _changed(self, report: Any) -> Any:
        """The report as it would have been."""

    def _carried_out(self, state: Any) -> Any:
        """What would have been known once the request is carried out."""
        return state


class RetentionReplay(Replay):
    """A stream without a policy gets none; without another policy it is the one that was. `head` is the replay's."""

    def __init__(self, rule: RetentionRule, policy: RetentionPolicy | None) -> None:
        super().__init__(rule)
        self._policy = policy
        self._head: SizedCut | None = None
        self._creation_id = ""

    @property
    def head(self) -> SizedCut | None:
        """Where the stream would begin, None before the first report."""
        return self._head

    def _changed(self, report: RetentionReport) -> RetentionReport:
        if report.creation_id != self._creation_id:
            self._head, self._creation_id = None, report.creation_id
        if self._head is None or report.policy is None:
            self._head = report.head
        if report.policy is None:
            return report
        head, ranges = self._head, {**(self._state.ranges if self._state is not None else {}), **report.ranges}

        def moved(reader: SizedCut) -> SizedCut:
            """Who is behind the head is where it is, as in a report."""
            return reader if is_at_or_before(head.cut, reader.cut, ranges) else head

        return msgspec.structs.replace(
            report,
            policy=self._policy or report.policy,
            head=head,
            subscribers={name: moved(reader) for name, reader in report.subscribers.items()},
            bound=moved(report.bound) if report.bound is not None else None,
        )

    def _carried_out(self, state: RetentionState) -> RetentionState:
        if state.requested is None:
            return state
        self._head = state.requested.target
        return msgspec.structs.replace(state, head=self._head)


class ScalingReplay(Replay):
    def __init__(self, rule: ScaleRule, other: OtherScaling) -> None:
        super().__init__(rule if other.cooldown_ms is None else ScaleRule(other.cooldown_ms))
        wanted = {"min_segments": other.min_segments, "scale_factor": other.scale_factor}
        self._changes = {name: value for name, value in wanted.items() if value is not None}

    def _changed(self, report: ScaleReport) -> ScaleReport:
        return msgspec.structs.replace(report, policy=msgspec.structs.replace(report.policy, **self._changes))


def replayed(replay: Replay, records: Iterable[Record], until: int) -> list[HistoryRow]:
    """What is decided of a stream up to a time, as far as it is news."""
    for record in records:
        replay.observe(record)
    replay.end(until)
    return replay.rows()


class _About(msgspec.Struct):
    stream: str


def is_about(record: Record, stream: str) -> bool:
    """Whether the report can be read and is about that stream, not about another one of its key."""
    try:
        return msgspec.json.decode(record.value, type=_About).stream == stream
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False


def replay_of(rules: Rules, policy: Policy) -> Replay:
    """The replay of another policy."""
    if isinstance(policy, RetentionPolicy):
        return RetentionReplay(rules.retention, policy)
    return ScalingReplay(rules.scale, policy)
