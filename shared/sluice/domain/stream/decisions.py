"""What was decided on a stream's scaling and retention: until when it may be requested; why, for operators to read.

retention-spark decides repeatedly; the journal records a decision when it differs from the one before. Each kind is
recorded in the order it was decided in, several decisions at one time included; what comes late changes nothing.
One that acts is recorded each time, since each has a request of its own; it stays readable beside later ones that do
not.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sluice.domain.decision import Context, Decide, Decision, Reader
from sluice.domain.stream import events as ev
from sluice.domain.stream.commands import RecordDecision, Subscription
from sluice.domain.stream.state import RecordedDecision, Stream, find_stream
from sluice.domain.wording import duration

HOLDS_MS = 3 * 60 * 1000
"""How long a decision, like a report, is taken for true: a few times the interval at which streams are sampled."""


def overdue(at: int, context: Context) -> str:
    """What is wrong with a request for what was decided at `at` (epoch ms), "" if nothing.

    Who decides may freeze before it sends, or send anew with the old time. So the time of sending is the broker's.
    """
    if context.appended_at <= at + HOLDS_MS:
        return ""
    return f"decided more than {duration(HOLDS_MS)} before it was sent, unless the clock of retention-spark is behind"


def unknown(known: Mapping[str, Subscription], present: Mapping[str, Subscription]) -> list[str]:
    """The reader groups that have subscribed, or reported for the first time, since a decision that knew the others.

    Those others have moved ahead at most, so they need no less than they did.
    """
    return [name for name, subscription in present.items() if known.get(name) != subscription]


def decide_note(reader: Reader, command: RecordDecision, _context: Context) -> Decision:
    """No event if the decision is about an earlier stream of the name, or repeats the last one.

    A decision that acts is recorded each time.
    """
    stream = find_stream(reader, command.stream_id)
    if stream is None or stream.creation_id != command.creation_id:
        return Decision()
    known = stream.decisions.get(command.kind)
    if known is not None and (known.at > command.at or _is_known(known, command)):
        return Decision()
    recorded = ev.DecisionRecorded(
        *command.stream_id,
        kind=command.kind,
        code=command.code,
        reason=command.reason,
        at=command.at,
        acts=command.acts,
        request=command.request,
        numbers=command.numbers,
    )
    return Decision((recorded,))


def _is_known(known: RecordedDecision, command: RecordDecision) -> bool:
    alike = (known.code, known.reason) == (command.code, command.reason)
    return alike and (not command.acts or known.at == command.at)


def _recorded(state: Stream, event: ev.DecisionRecorded) -> Stream:
    decision = RecordedDecision(event.code, event.reason, event.at)
    state.decisions = {**state.decisions, event.kind: decision}
    if event.acts:
        state.actions = {**state.actions, event.kind: decision}
    return state


DECIDE: dict[type, Decide] = {RecordDecision: decide_note}

EVOLVE: dict[type, Callable[[Any, Any], Any]] = {ev.DecisionRecorded: _recorded}
