"""What the deletions of a scope do: raise the fences, and delete every resource in it, until all are gone.

The views show how far it has come; the next owner of the workflow sends commands for what is still there. Each
resource gets the command that brings it closer to its end, and none while a workflow of its own runs. So resources
that are stuck delay no other, and leave no requests behind. Of a large scope only the first are looked at, of each kind
and partition as many as may be requested at once.
Rules: controller-grpc-api 5.1, background-and-other-workflows 7.
"""

from functools import partial

from sluice.domain.decision import Reader
from sluice.domain.ids import ResourceId
from sluice.domain.names import fences_aggregate
from sluice.domain.scope.fences import fences_to_raise
from sluice.domain.scope.state import Scope
from sluice.domain.scope_deletion import Command, next_command, resources
from sluice.domain.workflow import running
from sluice.engine.dependencies import MAX_UNDER_WAY, Dependency
from sluice.engine.step import all_done
from stream_workflows.step_context import StreamStepContext


async def fence(context: StreamStepContext, scope: Scope) -> None:
    """Raise the fences of all partitions, by records of their own: no request queue stands between.

    Of a partition that has stopped since its fence was raised nothing is wanted any more.
    """
    fences = fences_to_raise(context.reader(scope.name), scope.name)
    missing = [each for each in fences if not each.is_raised(context.reader(each.key).get(fences_aggregate(each.key)))]
    await all_done(context.propose(each.key, each.decide) for each in missing)


async def empty(context: StreamStepContext, scope: Scope) -> None:
    to_request: list[Dependency] = []
    at_work: list[Dependency] = []
    for alike in resources(context.reader(scope.name).everywhere(), scope.name):
        enough = len(to_request) + MAX_UNDER_WAY
        for resource in alike:
            need = _need(context, resource)
            (at_work if need.command is None else to_request).append(need)
            if len(to_request) == enough:
                break
    # What is seen to be at work first may be stuck, and only so many are watched.
    context.require([*to_request, *reversed(at_work)])


def _need(context: StreamStepContext, resource: ResourceId) -> Dependency:
    """What has to happen to a resource next."""
    name = resource.aggregate
    state = context.reader(resource.key).get(name)
    workflow, command = running(state), next_command(state)
    if workflow is not None:
        return Dependency(f"{name}: {workflow.kind.value} runs", resource.key, partial(_has_ended, name, workflow.id))
    assert command is not None, name
    return Dependency(f"{name} has not yet begun to go", resource.key, partial(_has_begun, name, command), command)


def _has_begun(name: str, command: Command, reader: Reader) -> bool:
    return next_command(reader.get(name)) != command


def _has_ended(name: str, workflow: str, reader: Reader) -> bool:
    found = running(reader.get(name))
    return found is None or found.id != workflow
