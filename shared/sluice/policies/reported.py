"""Which decisions are reported, and in what form. Pure."""

import msgspec

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


def is_news(last_reported: LastReported | None, verdict: Verdict, now: int) -> bool:
    """Whether the decision differs from the last reported one, or that one is old."""
    if last_reported is None or verdict.request is not None or last_reported.code != verdict.code:
        return True
    return last_reported.reason != verdict.reason and now - last_reported.at >= REPORT_AGAIN_MS
