"""What another policy would have done with a stream: its recorded reports replayed, beside what was decided.

It is what retention-spark's batch job says, which replays the same reports by the same functions. Reports are read
from 7 days before the span on, so that what is known of the stream when the span begins is what was known then.
"""

import msgspec

from sluice.domain.config import RetentionPolicy
from sluice.domain.ids import StreamId
from sluice.domain.stream.commands import DecisionKind
from sluice.insight.decisions import DecisionModel
from sluice.kafka.topics import RETENTION, SCALE
from sluice.lookback.deciding import DecisionsQuestion, decisions
from sluice.lookback.errors import InvalidTextError, TimeIsOverError
from sluice.lookback.jobs import Job, JobContext
from sluice.lookback.reported import MAX_SPAN_MS, reports_on
from sluice.policies.replay import OtherScaling, Policy
from sluice.policies.rules import Rules
from sluice.policies.what_if import MAX_ITEMS, WhatIf, WhatIfItem, WhatIfReplay

ON_ITS_WAY_MS = 60_000
"""A question for 7 days is one that has waited for its turn, too."""

NOT_ALL = "of what happened only the latest decisions are shown"


class WhatIfQuestion(msgspec.Struct, frozen=True):
    """One of the two policies, and since when (epoch ms); `rules` are those of this system."""

    stream: StreamId
    since: int
    rules: Rules
    retention: RetentionPolicy | None = None
    scaling: OtherScaling | None = None


def what_if(context: JobContext, question: WhatIfQuestion) -> WhatIf:
    """Raises LookbackError."""
    policy = question.retention or question.scaling
    if policy is None:
        raise InvalidTextError("what if there were which policy?", "give one for scaling or one for retention")
    until = context.now_ms
    if not until - MAX_SPAN_MS - ON_ITS_WAY_MS <= question.since <= until:
        raise InvalidTextError("what-if looks back 7 days at most, and not ahead", "give a later time")
    replay = WhatIfReplay(question.rules, policy, question.since, until)
    for record in reports_on(context, question.stream, _topic(policy), question.since - MAX_SPAN_MS):
        replay.observe(record)
    happened, complete = _happened(context, question, until)
    found = replay.result([_shown(one) for one in happened])
    if not complete:
        found.notes.append(NOT_ALL)
    return found


def _topic(policy: Policy) -> str:
    return (RETENTION if isinstance(policy, RetentionPolicy) else SCALE).name


def _happened(context: JobContext, question: WhatIfQuestion, until: int) -> tuple[list[DecisionModel], bool]:
    """The recorded decisions by time, and whether all of them were found in time."""
    kind = DecisionKind.RETENTION if question.retention is not None else DecisionKind.SCALE
    page_of = DecisionsQuestion(question.since, until + 1, question.stream, kind, limit=MAX_ITEMS)
    found: list[DecisionModel] = []
    try:
        while len(found) < MAX_ITEMS:
            page = decisions(context, page_of)
            found += page.items
            if page.next is None:
                return found[::-1], True
            page_of = msgspec.structs.replace(page_of, before=page.next)
    except TimeIsOverError:
        pass
    return found[::-1], False


def _shown(decision: DecisionModel) -> WhatIfItem:
    segments = (decision.numbers or {}).get("segmentsAfter")
    return WhatIfItem(decision.at, decision.code, decision.reason, segments, decision.acts or False)


WHAT_IF = Job("what-if", WhatIfQuestion, WhatIf, what_if)
