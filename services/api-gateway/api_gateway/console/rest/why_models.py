"""What is shown of decisions of the past, and of what another policy would have done."""

from typing import Annotated, Literal

from pydantic import Field

from api_gateway.console.rest.base import INT32_MAX, INT64_MAX, Body, Model
from api_gateway.console.rest.config_models import Retention
from sluice.domain.config import MAX_SEGMENTS
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.state import RecordedDecision


class DecisionModel(Model):
    """A decision on scaling or retention. Of the last ones only kind, code, reason and time are at hand."""

    stream: str | None = Field(default=None, examples=["demo/orders"])
    kind: Literal["scale", "retention"]
    code: str = Field(description="Which case it was.", examples=["split"])
    reason: str = Field(description="Why, in words.")
    at: int = Field(description="When it was taken, epoch ms.")
    recorded_at: int | None = Field(default=None, description="When the journal took it, epoch ms.")
    acts: bool | None = Field(default=None, description="Whether a scale or a truncation was requested for it.")
    numbers: dict[str, int] | None = Field(
        default=None,
        description="What it rests on, by name with the unit.",
        examples=[{"segments": 2, "segmentsAfter": 3, "hot": 1, "cold": 0, "targetEvents": 1000, "minSegments": 2}],
    )
    request: str | None = Field(default=None, description="The id of what was requested.")
    carried_out: bool | None = Field(
        default=None, description="Whether that was begun, or else refused; left out while neither is known."
    )


def decision_model(kind: DecisionKind, last: RecordedDecision) -> DecisionModel:
    """The last decision of a kind, as the stream has it."""
    return DecisionModel(kind=kind.value, code=last.code, reason=last.reason, at=last.at)


class DecisionList(Model):
    """Decisions. Without a span: the last new one of each kind, and the last that acts if that is another one.

    With one, all that were recorded in it, the latest first.
    """

    items: list[DecisionModel]
    next: str | None = Field(default=None, description="Where the next page begins; left out at the end.")
    searched_to: int | None = Field(
        default=None, description="The moment back to which all that fit are here, epoch ms; left out without a span."
    )
    complete: bool | None = Field(default=None, description="Whether all of the span is here that is kept.")
    kept_from: int | None = Field(
        default=None, description="Before this moment not all is kept, epoch ms; left out if all of the span is."
    )


class OtherScalingBody(Body):
    """What is to be another in the scaling policy; left out: as it was."""

    min_segments: int | None = Field(default=None, ge=1, le=MAX_SEGMENTS)
    scale_factor: int | None = Field(default=None, ge=2, le=INT32_MAX)
    cooldown_ms: int | None = Field(default=None, ge=0, le=INT64_MAX)
    target_rate: int | None = Field(default=None, description="Refused: no report says what it would have led to.")


class WhatIfBody(Body):
    """Another policy, of one of both kinds, and since when."""

    scaling: OtherScalingBody | None = None
    retention: Retention | None = None
    since: Annotated[int, Field(ge=0, le=INT64_MAX)] | str | None = Field(
        default=None,
        description="Epoch ms, ISO 8601 or `-24h`, 7 days ago at most; left out: a day ago.",
        examples=["-24h"],
    )


class WhatIfDecision(Model):
    """A decision that was made, or would have been."""

    at: int
    code: str
    reason: str
    segments: int | None = Field(default=None, description="How many there are once it is carried out, of a scale.")
    acts: bool | None = Field(default=None, description="Whether a scale or a truncation is requested for it.")
    passing: bool | None = Field(
        default=None, description="Whether it only says that an earlier one is under way: what happened has none such."
    )


class KeptBytesModel(Model):
    """Bytes between the head and the end of the stream, at these times: columns of one length."""

    at: list[int]
    happened: list[int]
    would: list[int]


class WhatIfAnswer(Model):
    """What happened, and what would have with the other policy."""

    kind: Literal["scale", "retention"]
    since: int
    until: int
    happened: list[WhatIfDecision]
    would: list[WhatIfDecision]
    first_difference: int | None = Field(
        default=None, description="When the two policies first act differently; it may be before `since`."
    )
    kept: KeptBytesModel | None = Field(default=None, description="Of a retention.")
    notes: list[str] = Field(description="How far that holds, in words.")
