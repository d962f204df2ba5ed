"""What the recursive deletion of a scope does: ask everything in it to go, and look until it is gone.

The names that are left show how far it has come; whoever takes it over asks again for what is still there. A thing
gives its name back just before it goes, so the last ones are waited for when no name is left.
Rules: controller-grpc-api 5.1, background-and-other-workflows 7.
"""

from functools import partial
from typing import Any

from sluice.domain.decision import Reader
from sluice.domain.group import ReaderGroup
from sluice.domain.names import key_of
from sluice.domain.scope import Scope, deletions, find_scope
from sluice.domain.stream.state import Stream
from sluice.domain.table import Table
from sluice.workflows.steps import all_done
from stream_workflows.tools import StreamTools

AT_ONCE = 200


def _left(reader: Reader, name: str) -> int:
    scope = find_scope(reader, name)
    return sum(len(names) for names in scope.names.values()) if scope else 0


def _has_at_most(reader: Reader, name: str, most: int) -> bool:
    return _left(reader, name) <= most


def _lives_in(scope: str, state: Any) -> bool:
    return isinstance(state, Stream | ReaderGroup | Table) and state.scope == scope


def _is_gone(reader: Reader, aggregate: str, scope: str) -> bool:
    return not _lives_in(scope, reader.get(aggregate))


async def empty(tools: StreamTools, scope: Scope) -> None:
    name = scope.name
    while (left := _left(tools.reader(name), name)) > 0:
        await all_done(tools.ask(command) for command in deletions(scope, AT_ONCE))
        await tools.wait(name, partial(_has_at_most, name=name, most=max(0, left - AT_ONCE // 2)))
    while last := await tools.find_all(partial(_lives_in, name)):
        await all_done(tools.wait(key_of(thing), partial(_is_gone, aggregate=thing, scope=name)) for thing in last)
