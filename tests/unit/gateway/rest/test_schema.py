"""Both interfaces do what their description says, whatever they are sent.

schemathesis makes calls from the description, right and wrong ones; the same each time. Bounded by the number of
examples, about 20 s. Two of its checks do not fit:

- that whatever the description allows is taken: it cannot say all of the rules (which names, which combinations);
- that whatever it does not allow is refused, for Pravega's interface: that reads numbers as text and the other way
  round, as the original does.
"""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS
from unit.gateway.rest.world import World

from api_gateway.feed import feeds
from api_gateway.rest.app import build_app
from sluice.telemetry.health import HttpServer

EXAMPLES = 6

_PROCESS: Any = SimpleNamespace(checks={}, degraded={}, facts={})
SCHEMA = schemathesis.openapi.from_dict(build_app(_PROCESS, max_calls=1).openapi())
OURS = SCHEMA.include(path_regex="^/sluice/")
PRAVEGAS = SCHEMA.exclude(path_regex="^/sluice/")

_TOO_MUCH = CHECKS.get_by_names(["positive_data_acceptance"])
_TOO_MUCH_FOR_PRAVEGAS = CHECKS.get_by_names(["positive_data_acceptance", "negative_data_rejection"])

bounded = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    database=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def base_url(unused_tcp_port_factory: Callable[[], int]) -> Iterator[str]:
    """A gateway that is served by a loop of its own."""
    port, loop = unused_tcp_port_factory(), asyncio.new_event_loop()
    serving, ending = threading.Event(), asyncio.Event()

    async def serve() -> None:
        world = World()
        await world.start()
        server = HttpServer(world.app, "127.0.0.1", port)
        await server.start()
        serving.set()
        await ending.wait()
        await server.stop()
        await world.stop()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), name="gateway")
    with pytest.MonkeyPatch.context() as patch:
        # A feed would outlast every call.
        patch.setattr(feeds, "MAX_LIFE_S", 0.0)
        thread.start()
        assert serving.wait(10)
        yield f"http://127.0.0.1:{port}"
        loop.call_soon_threadsafe(ending.set)
        thread.join()
    loop.close()


def _calls_of(schema: Any, excluded_checks: list[Any]) -> dict[str, Callable[[Any], None]]:
    """A test for each call, with a name of its own: what schemathesis makes of one test for all has one id only."""

    def test_of(label: str) -> Callable[[Any], None]:
        @SCHEMA.include(name=label).parametrize()
        @bounded
        def test(case: Any, base_url: str) -> None:
            case.call_and_validate(base_url=base_url, excluded_checks=excluded_checks)

        return cast(Callable[[Any], None], test)

    labels = [operation.ok().label for operation in schema.get_all_operations()]
    return {f"test_{re.sub(r'[^a-z0-9]+', '_', label.lower())}": test_of(label) for label in labels}


CALLS = _calls_of(OURS, _TOO_MUCH) | _calls_of(PRAVEGAS, _TOO_MUCH_FOR_PRAVEGAS)
globals().update(CALLS)


def test_each_call_has_a_test() -> None:
    assert len(CALLS) == len(list(SCHEMA.get_all_operations())) > 60
