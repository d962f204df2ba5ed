"""Both interfaces do what their description says, whatever they are sent.

schemathesis makes calls from the description, right and wrong ones; the same each time. Bounded by the number of
examples, about 20 s. Two of its checks do not fit:

- that whatever the description allows is taken: it cannot say all of the rules (which names, which combinations);
- that whatever it does not allow is refused, for Pravega's interface: that reads numbers as text and the other way
  round, as the original does.
"""

import re
from collections.abc import Callable
from typing import Any, cast

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS
from unit.gateway.rest.world import World

EXAMPLES = 6

_WORLD = World()
_WORLD.open()
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", _WORLD.app)
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


def _calls_of(schema: Any, excluded_checks: list[Any]) -> dict[str, Callable[[Any], None]]:
    """A test for each call, with a name of its own: what schemathesis makes of one test for all has one id only."""

    def test_of(label: str) -> Callable[[Any], None]:
        @SCHEMA.include(name=label).parametrize()
        @bounded
        def test(case: Any) -> None:
            case.call_and_validate(excluded_checks=excluded_checks)

        return cast(Callable[[Any], None], test)

    labels = [operation.ok().label for operation in schema.get_all_operations()]
    return {f"test_{re.sub(r'[^a-z0-9]+', '_', label.lower())}": test_of(label) for label in labels}


CALLS = _calls_of(OURS, _TOO_MUCH) | _calls_of(PRAVEGAS, _TOO_MUCH_FOR_PRAVEGAS)
globals().update(CALLS)


def test_each_call_has_a_test() -> None:
    assert len(CALLS) == len(list(SCHEMA.get_all_operations())) > 60
