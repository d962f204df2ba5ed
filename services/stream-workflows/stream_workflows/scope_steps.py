"""What the recursive deletion of a scope does: ask everything in it to go, and look until it is empty.

The names that are left show how far it has come; whoever takes it over asks again for what is still there.
Rules: controller-grpc-api 5.1, background-and-other-workflows 7.
"""

from functools import partial

from sluice.domain.decision import Reader
from sluice.domain.scope import Scope, deletions, find_scope
from sluice.workflows.steps import all_done
from stream_workflows.tools import StreamTools

AT_ONCE = 200


def _left(reader: Reader, name: str) -> int:
    scope = find_scope(reader, name)
    return sum(len(names) for names in scope.names.values()) if scope else 0


def _has_at_most(reader: Reader, name: str, most: int) -> bool:
    return _left(reader, name) <= most


async def empty(tools: StreamTools, scope: Scope) -> None:
    name = scope.name
    while (left := _left(tools.reader(name), name)) > 0:
        await all_done(tools.ask(command) for command in deletions(scope, AT_ONCE))
        await tools.wait(name, partial(_has_at_most, name=name, most=max(0, left - AT_ONCE // 2)))
