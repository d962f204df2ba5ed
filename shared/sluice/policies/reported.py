"""Which decisions are reported, and in what form. Pure."""

import msgspec

from sluice.domain.ids import StreamId
from sluice.domain.stream.commands import DecisionKind
from sluice.policies.rules import Verdict

REPORT_AGAIN_MS = 10 * 60 * 1000
"""After so long a decision with another reason, but of the same case, is reported anew."""


class LastReported(msgspec.Struct, frozen=True):
    """The last decision that was reported, at `at` (epoch ms)."""

    code: str
    reason: str
    at: int


class HistoryRow(msgspec.Struct, frozen=True):
    """A decision as the history stores it; `command` is JSON, "" like `request` if there is no request."""

    id: str
    kind: str
    at: int
    scope: str
    stream: str
    code: str
    reason: str
    request: str
    command: str


def is_news(last: LastReported | None, verdict: Verdict, now: int) -> bool:
    """Whether the decision differs from the last reported one, or that one is old."""
    if last is None or verdict.request is not None or last.code != verdict.code:
        return True
    return last.reason != verdict.reason and now - last.at >= REPORT_AGAIN_MS


def history_row(kind: DecisionKind, stream: StreamId, verdict: Verdict, at: int, id: str = "") -> HistoryRow:
    """The decision as the history stores it; `at` in epoch ms."""
    request, command = verdict.request if verdict.request is not None else ("", None)
    return HistoryRow(
        id=id,
        kind=kind.value,
        at=at,
        scope=stream.scope,
        stream=stream.name,
        code=verdict.code,
        reason=verdict.reason,
        request=request,
        command=msgspec.json.encode(command).decode() if command is not None else "",
    )
