"""Both interfaces do what their description says, whatever they are sent, and whoever sends it.

schemathesis makes calls from the description, right and wrong ones; the same each time. Bounded by the number of
examples, about 40 s. Two of its checks do not fit:

- that whatever the description allows is taken: it cannot say all of the rules (which names, which combinations);
- that whatever it does not allow is refused, for Pravega's interface: that reads numbers as text and the other way
  round, as the original does.

With authentication the same calls come from a user who may only read. A further check is schemathesis' own: whoever
leaves the credentials out, or sends others, is refused.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS
from support.loops import LoopInThread
from unit.gateway.rest.world import World
from unit.gateway.security.support import ALL, READ, Callers

from api_gateway.app import build_app
from api_gateway.console.feed import feeds
from api_gateway.edge.security.guard import Guard
from sluice.telemetry.health import HttpServer

EXAMPLES = 6
EXAMPLES_OF_A_USER = 2

_PROCESS: Any = SimpleNamespace(checks={}, outages={}, degraded={}, facts={})
_GUARD = Guard(Callers(reader={ALL: READ}), readers_write=False)
SCHEMA = schemathesis.openapi.from_dict(build_app(_PROCESS, connections=10).openapi())
GUARDED = schemathesis.openapi.from_dict(build_app(_PROCESS, connections=10, guard=_GUARD).openapi())
OURS = SCHEMA.include(path_regex="^/sluice/")
PRAVEGAS = SCHEMA.exclude(path_regex="^/sluice/")

_TOO_MUCH = CHECKS.get_by_names(["positive_data_acceptance"])
_TOO_MUCH_FOR_PRAVEGAS = CHECKS.get_by_names(["positive_data_acceptance", "negative_data_rejection"])


def _bounded(examples: int, *phases: Phase) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def _served(port: int, guard: Guard | None = None) -> Iterator[str]:
    """A gateway that is served by a loop of its own; its base URL."""

    async def start() -> tuple[World, HttpServer]:
        world = World(guard=guard)
        await world.start()
        server = HttpServer(world.app, "127.0.0.1", port)
        await server.start()
        return world, server

    async def stop(world: World, server: HttpServer) -> None:
        await server.stop()
        await world.stop()

    with LoopInThread("gateway") as loop, pytest.MonkeyPatch.context() as patch:
        # A feed would outlast every call.
        patch.setattr(feeds, "MAX_LIFE_S", 0.0)
        served = loop.run(start())
        yield f"http://127.0.0.1:{port}"
        loop.run(stop(*served))


@pytest.fixture(scope="module")
def base_url(unused_tcp_port_factory: Callable[[], int]) -> Iterator[str]:
    with _served(unused_tcp_port_factory()) as url:
        yield url


@pytest.fixture(scope="module")
def guarded_url(unused_tcp_port_factory: Callable[[], int]) -> Iterator[str]:
    with _served(unused_tcp_port_factory(), _GUARD) as url:
        yield url


def _calls_of(schema: Any, excluded_checks: list[Any]) -> dict[str, Callable[[Any], None]]:
    """A test for each call, with a name of its own: what schemathesis makes of one test for all has one id only."""

    def test_of(label: str) -> Callable[[Any], None]:
        @SCHEMA.include(name=label).parametrize()
        @_bounded(EXAMPLES, Phase.explicit, Phase.generate)
        def test(case: Any, base_url: str) -> None:
            case.call_and_validate(base_url=base_url, excluded_checks=excluded_checks)

        return cast(Callable[[Any], None], test)

    return {_name_of(label): test_of(label) for label in _labels_of(schema)}


def _calls_of_a_reader() -> dict[str, Callable[[Any], None]]:
    """The same of a user who may read, without a wrong call for each parameter.

    What is refused for want of a permission is refused before it is looked at.
    """

    def test_of(label: str) -> Callable[[Any], None]:
        @GUARDED.include(name=label).parametrize()
        @_bounded(EXAMPLES_OF_A_USER, Phase.generate)
        def test(case: Any, guarded_url: str) -> None:
            headers = {"Authorization": "Basic reader"}
            case.call_and_validate(base_url=guarded_url, headers=headers, excluded_checks=_TOO_MUCH_FOR_PRAVEGAS)

        return cast(Callable[[Any], None], test)

    return {f"{_name_of(label)}_by_a_reader": test_of(label) for label in _labels_of(GUARDED)}


def _labels_of(schema: Any) -> list[str]:
    return [operation.ok().label for operation in schema.get_all_operations()]


def _name_of(label: str) -> str:
    return f"test_{re.sub(r'[^a-z0-9]+', '_', label.lower())}"


CALLS = _calls_of(OURS, _TOO_MUCH) | _calls_of(PRAVEGAS, _TOO_MUCH_FOR_PRAVEGAS)
CALLS_OF_A_READER = _calls_of_a_reader()
globals().update(CALLS | CALLS_OF_A_READER)


def test_each_call_has_a_test() -> None:
    assert len(CALLS) == len(CALLS_OF_A_READER) == len(list(SCHEMA.get_all_operations())) > 60
