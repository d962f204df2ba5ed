"""What the recursive deletion of a scope does: ask everything in it to go, and look until it is gone.

The names that are left show how far it has come; whoever takes it over asks again for what is still there. Each thing
is asked for its next step towards the end, and for nothing while it is at work; so those that are stuck keep no other
from going, and leave no requests behind. A thing gives its name back just before it goes, so the last ones are waited
for when no name is left.
Rules: controller-grpc-api 5.1, background-and-other-workflows 7.
"""

from functools import partial
from typing import Any

from sluice.domain.decision import Reader
from sluice.domain.emptying import Thing, is_alive, next_command, things
from sluice.domain.names import key_of
from sluice.domain.scope import Scope, find_scope
from sluice.domain.workflow import Workflow, running
from sluice.workflows.waiting import Need
from stream_workflows.tools import StreamTools


async def empty(tools: StreamTools, scope: Scope) -> None:
    to_ask: list[Need] = []
    at_work: list[Need] = []
    for thing in things(scope):
        for need in _needs(thing, tools.reader(thing.key).get(thing.aggregate)):
            (at_work if need.ask is None else to_ask).append(need)
    # What stands last in the scope has begun last, mostly, and those before it may be stuck.
    tools.need([*to_ask, *reversed(at_work)])
    last = await tools.find_all(partial(_lives_in, scope.name))
    tools.need(Need(f"{thing} is still there", key_of(thing), partial(_is_gone, thing)) for thing in last)


def _needs(thing: Thing, state: Any) -> tuple[Need, ...]:
    """What has to happen to a thing next. A name without one is that of a thing to come, or is about to go."""
    name, workflow, command = thing.aggregate, running(state), next_command(state)
    if workflow is not None:
        return (Need(f"{name}: {workflow.kind.value} runs", thing.key, partial(_has_ended, name, workflow)),)
    if command is not None:
        return (Need(f"{name} has not yet begun to go", thing.key, partial(_has_begun, name, type(command)), command),)
    return (
        Need(
            f"{name} is held by the scope, but not there; its creation may be a dead letter to replay",
            thing.key,
            lambda reader: is_alive(reader.get(name)),
        ),
        Need(f"{name} is not yet released", thing.scope, partial(_is_released, thing)),
    )


def _has_begun(name: str, command: type, reader: Reader) -> bool:
    return type(next_command(reader.get(name))) is not command


def _has_ended(name: str, workflow: Workflow, reader: Reader) -> bool:
    return running(reader.get(name)) is not workflow


def _is_released(thing: Thing, reader: Reader) -> bool:
    scope = find_scope(reader, thing.scope)
    return scope is None or thing.name not in scope.names[thing.kind]


def _lives_in(scope: str, state: Any) -> bool:
    return is_alive(state) and state.scope == scope


def _is_gone(name: str, reader: Reader) -> bool:
    return not is_alive(reader.get(name))
