"""Why the automatics did what they did: decisions of a span of time, and what another policy would have done.

Both are read in the past. The decision that a stream has last is shown without that.
"""

from functools import partial
from typing import Annotated, Literal

from fastapi import Query, Response

from api_gateway.console.looking_back import From, LookBack, LookingBack, To
from api_gateway.console.paging import DEFAULT, After, Limit, numbers_in, token_of
from api_gateway.console.rest.base import INT64_MAX, ScopeName, StreamName, refusals, router
from api_gateway.console.rest.config_models import retention_of
from api_gateway.console.rest.why_models import (
    DecisionList,
    KeptBytesModel,
    WhatIfAnswer,
    WhatIfBody,
    WhatIfDecision,
)
from api_gateway.console.what_ifs import WhatIfs
from api_gateway.edge.errors import BadRequestError
from api_gateway.edge.listing import may_read
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedReads, served
from sluice.domain.ids import StreamId
from sluice.domain.stream.commands import DecisionKind
from sluice.domain.stream.state import StreamState
from sluice.insight.decisions import last_decisions
from sluice.insight.reported import ReportedModel
from sluice.insight.streams import undecided_since
from sluice.lookback.deciding import DECISIONS, Decisions, DecisionsQuestion
from sluice.lookback.filters import decision_code
from sluice.lookback.reported import REPORTED, ReportedQuestion
from sluice.lookback.what_if import WHAT_IF, WhatIfQuestion
from sluice.policies.policy_parser import NO_TARGET
from sluice.policies.replay import OtherScaling
from sluice.policies.what_if import WhatIf, WhatIfItem
from sluice.security.resources import mapped_resource

routes = router("decisions")

_STREAM = "/scopes/{scope}/streams/{stream}"
DAY = "-24h"

Kind = Annotated[Literal["scale", "retention"] | None, Query(description="Only those of this kind.")]
Code = Annotated[str | None, Query(max_length=40, description="Only those of this case.")]
Acts = Annotated[bool | None, Query(description="Only those that change the stream, or only those that do not.")]


@routes.get(f"{_STREAM}/decisions", operation_id="listDecisions", response_model=DecisionList, responses=refusals(404))
async def stream_decisions(
    reads: ServedReads,
    look_back: LookBack,
    scope: ScopeName,
    stream: StreamName,
    from_: From = "",
    to: To = "",
    kind: Kind = None,
    code: Code = None,
    acts: Acts = None,
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """List decisions on scaling and retention, with reasons: the last ones or, with `from`, all since then."""
    id = StreamId(scope, stream)
    if not from_:
        if kind or code or to or acts is not None:
            raise BadRequestError("to, kind, code and acts need from: without it the last decisions are listed")
        found = await reads.stream(id)
        since = undecided_since(found, reads.cluster())
        return as_json(DecisionList(items=last_decisions(found), undecided_since=since))
    question = _question(look_back, from_, to, kind, code, acts, limit, after, id)
    return as_json(_page(await look_back(DECISIONS, question)))


@routes.get("/decisions", operation_id="listAllDecisions", response_model=DecisionList, responses=refusals())
async def all_decisions(
    look_back: LookBack,
    from_: From = "",
    to: To = "",
    kind: Kind = None,
    code: Code = None,
    acts: Acts = None,
    limit: Limit = DEFAULT,
    after: After = "",
) -> Response:
    """List the decisions on all streams since a moment, a day ago if it is left out."""
    question = _question(look_back, from_ or DAY, to, kind, code, acts, limit, after, None)
    return as_json(_page(await look_back(DECISIONS, question)))


def _question(
    look_back: LookingBack,
    from_: str,
    to: str,
    kind: Literal["scale", "retention"] | None,
    code: str | None,
    acts: bool | None,
    limit: int,
    after: str,
    stream: StreamId | None,
) -> DecisionsQuestion:
    position = numbers_in(after, 5)
    return DecisionsQuestion(
        since=look_back.time(from_),
        until=look_back.time(to) + 1 if to else INT64_MAX,
        stream=stream,
        kind=DecisionKind(kind) if kind is not None else None,
        code=decision_code(code) if code else "",
        acts=acts,
        before=(position[0], position[1], position[2], position[3], position[4]) if position is not None else None,
        limit=limit,
    )


def _page(found: Decisions) -> DecisionList:
    return DecisionList(
        items=[one for one in found.items if one.stream is None or may_read(mapped_resource(*StreamId.of(one.stream)))],
        next=token_of(".".join(map(str, found.next))) if found.next is not None else None,
        searched_to=found.searched_to,
        kept_from=found.kept_from,
        complete=found.complete,
    )


@routes.get(f"{_STREAM}/reports", operation_id="showReported", response_model=ReportedModel, responses=refusals(404))
async def stream_reports(reads: ServedReads, look_back: LookBack, scope: ScopeName, stream: StreamName) -> Response:
    """Show what decisions rest on, from the reports of 7 days at most: hot and cold segments, and the retention set."""
    found = await reads.stream(StreamId(scope, stream))
    written = () if found.state is StreamState.SEALED else found.active_epoch.segments
    shown = await look_back(REPORTED, ReportedQuestion(found.id, found.creation_id, frozenset(written)))
    return as_json(shown)


@routes.post(f"{_STREAM}/what-if", operation_id="whatIf", response_model=WhatIfAnswer, responses=refusals(404, 413))
async def what_if(
    reads: ServedReads,
    what_ifs: Annotated[WhatIfs, served(WhatIfs)],
    look_back: LookBack,
    scope: ScopeName,
    stream: StreamName,
    body: WhatIfBody,
) -> Response:
    """Say what another scaling or retention would have done. Nothing is changed."""
    await reads.stream(StreamId(scope, stream))
    if (body.scaling is None) == (body.retention is None):
        raise BadRequestError("give another scaling or another retention, one of both")
    if body.scaling is not None and body.scaling.target_rate is not None:
        raise BadRequestError(f"scaling.targetRate: {NO_TARGET}")
    question = WhatIfQuestion(
        stream=StreamId(scope, stream),
        since=body.since if isinstance(body.since, int) else look_back.time(body.since or DAY),
        rules=what_ifs.rules,
        retention=retention_of(body.retention) if body.retention is not None else None,
        scaling=OtherScaling(body.scaling.min_segments, body.scaling.scale_factor, body.scaling.cooldown_ms)
        if body.scaling is not None
        else None,
    )
    found = await what_ifs.ask(partial(look_back, WHAT_IF), question)
    return as_json(_answer(found))


def _answer(found: WhatIf) -> WhatIfAnswer:
    kept = found.kept
    return WhatIfAnswer(
        kind=found.kind.value,
        since=found.since,
        until=found.until,
        happened=list(map(_item, found.happened)),
        would=list(map(_item, found.would)),
        first_difference=found.first_difference,
        kept=KeptBytesModel(at=kept.at, happened=kept.happened, would=kept.would) if kept is not None else None,
        notes=found.notes,
    )


def _item(one: WhatIfItem) -> WhatIfDecision:
    return WhatIfDecision(
        at=one.at,
        code=one.code,
        reason=one.reason,
        segments=one.segments,
        acts=one.acts or None,
        passing=one.passing or None,
    )
