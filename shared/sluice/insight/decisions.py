"""What is shown of decisions on scaling and retention."""

from typing import Literal

from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.state import RecordedDecision, Stream
from sluice.insight.shown import Shown, text


class DecisionModel(Shown):
    """A decision on scaling or retention. Of the last ones only kind, code, reason and time are at hand."""

    stream: str | None = text(default=None, examples=["demo/orders"])
    kind: Literal["scale", "retention"]
    code: str = text("Which case it was.", examples=["split"])
    reason: str = text("Why, in words.")
    at: int = text("When it was taken, epoch ms.")
    recorded_at: int | None = text("When the journal took it, epoch ms.", default=None)
    acts: bool | None = text("Whether a scale or a truncation was requested for it.", default=None)
    numbers: dict[str, int] | None = text(
        "What it rests on, by name with the unit.",
        default=None,
        examples=[{"segments": 2, "segmentsAfter": 3, "hot": 1, "cold": 0, "targetEvents": 1000, "minSegments": 2}],
    )
    request: str | None = text("The id of what was requested.", default=None)
    carried_out: bool | None = text(
        "Whether that was begun, or else refused; left out while neither is known.", default=None
    )


def last_decisions(stream: Stream) -> list[DecisionModel]:
    """The last decision of each kind, and the last that acts if that is another one; the latest first."""
    last = list(stream.decisions.items())
    last += [(kind, action) for kind, action in stream.actions.items() if action != stream.decisions.get(kind)]
    return [_shown(*one) for one in sorted(last, key=lambda one: one[1].at, reverse=True)]


def _shown(kind: DecisionKind, last: RecordedDecision) -> DecisionModel:
    return DecisionModel(kind=kind.value, code=last.code, reason=last.reason, at=last.at)
