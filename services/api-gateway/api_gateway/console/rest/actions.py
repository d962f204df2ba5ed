"""The actions on resources: what each sends, needs and answers, and which of them a caller may take now.

Where an operation is no more than a command, the function that makes it of a call, with `action` above it, is all of
it; the docstring describes it. The decision on a request has the last word: what is allowed is worth to be offered.
"""

import inspect
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Annotated, Any, get_type_hints

from fastapi import APIRouter, Depends, Response
from pydantic import BaseModel

from api_gateway.console.permissions import rule_of
from api_gateway.console.rest.base import Taken, changed, refusals
from api_gateway.console.rest.dry_runs import AnyAnswer, DryRun, DryRunModel, DryRunQuery
from api_gateway.console.rest.replies import done
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import Parts, ServedParts, Submit
from api_gateway.edge.security.rest_resources import Names
from sluice.domain.decision import Reply
from sluice.insight.shown import Allowed
from sluice.security.caller import CALLER, ForbiddenError

NO_PERMISSION = "the credentials do not allow it"

_OR_DRY = "With `dryRun`: what it would do."


class Action:
    """An action, and the operation that carries it out; `path` is one under /sluice/v1, as a route has it."""

    def __init__(self, name: str, method: str, path: str) -> None:
        self.name = name
        self._rule = rule_of(method, path)

    def judged(self, names: Names, why_not: str) -> Allowed:
        """For the caller, and a resource with these names, whose state forbids it for the reason given, or not ("")."""
        caller = CALLER.get()
        if caller is not None and self._rule is not None:
            try:
                self._rule.check(caller, names, False)
            except ForbiddenError:
                why_not = NO_PERMISSION
        return Allowed(action=self.name, allowed=not why_not, why=why_not or None)


def judged(actions: Iterable[tuple[Action, str]], names: Names) -> list[Allowed]:
    """Several actions on one resource, each with the reason that forbids it, or none ("")."""
    return [action.judged(names, why_not) for action, why_not in actions]


def taken(_parts: Parts, _command: Any, reply: Reply) -> Taken:
    """The answer to a command that has nothing else to say."""
    return Taken(status=reply.status)


def action(
    routes: APIRouter,
    name: str,
    method: str,
    path: str,
    *,
    id: str,
    about: str,
    says: str,
    status: int = 200,
    answer: Callable[[Parts, Any, Reply], BaseModel] = taken,
    refused: tuple[int, ...] = (404, 409),
    dry: bool = False,
) -> Callable[[Callable[..., Any]], Action]:
    """Adds to `routes` the operation that sends the command which the function below makes of a call.

    `about` names what is acted on, as a format of the command; `says` describes the answer with `status`. A deletion
    has no answer. With `dry` the call may only ask what it would do.
    """
    is_deletion = method == "DELETE"
    success = 204 if is_deletion else status
    model = None if is_deletion else get_type_hints(answer)["return"]
    responses: dict[int | str, Any] = {success: changed(says, model)}
    if dry and success == 200:
        responses = {200: changed(f"{says} {_OR_DRY}", AnyAnswer)}
    elif dry:
        responses = {200: {"description": _OR_DRY, "model": DryRunModel}, **responses}

    def add(make: Callable[..., Any]) -> Action:
        made = Depends(make)

        async def carried_out(parts: ServedParts, submit: Submit, command: Annotated[Any, made]) -> Response:
            reply = done(await submit(command), about.format(command))
            return Response(status_code=success) if is_deletion else as_json(answer(parts, command, reply), success)

        async def carried_out_or_dry(
            parts: ServedParts,
            dry_run: DryRun,
            submit: Submit,
            command: Annotated[Any, made],
            is_dry: DryRunQuery = False,
        ) -> Response:
            if is_dry:
                return await dry_run(command, about.format(command))
            return await carried_out(parts, submit, command)

        routes.add_api_route(
            path,
            carried_out_or_dry if dry else carried_out,
            methods=[method],
            operation_id=id,
            name=make.__name__,
            description=inspect.getdoc(make),
            status_code=success,
            responses={**responses, **refusals(*refused, is_change=True)},
        )
        return Action(name, method, path)

    return add


def why_not_now(state: Enum) -> str:
    """What forbids a change of a reader group or table in this state; empty if nothing does."""
    return f"it is being {'created' if state.value == 'CREATING' else 'deleted'}" if state.value != "ACTIVE" else ""
