"""What is shown of decisions of the past, and of what another policy would have done."""

from typing import Annotated, Literal

from pydantic import Field

from api_gateway.console.rest.base import INT32_MAX, INT64_MAX, Body, Model, Page
from api_gateway.console.rest.config_models import RetentionBody
from sluice.domain.config import MAX_SEGMENTS
from sluice.insight.decisions import DecisionModel


class DecisionList(Page[DecisionModel]):
    """Decisions. Without a span: the last new one of each kind, and the last that acts if that is another one.

    With one, all that were recorded in it, the latest first.
    """

    undecided_since: int | None = Field(
        default=None,
        description="Since when no retention-spark is there to decide, epoch ms; left out if one is, and with a span.",
    )
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
    retention: RetentionBody | None = None
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
