"""Both interfaces do what their description says, whatever they are sent.

schemathesis makes calls from the description, right and wrong ones; the same each time. Bounded by the number of
examples, about 20 s. Two of its checks do not fit:

- that whatever the description allows is taken: it cannot say all of the rules (which names, which combinations);
- that whatever it does not allow is refused, for Pravega's interface: that reads numbers as text and the other way
  round, as the original does.
"""

from typing import Any

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


@OURS.parametrize()
@bounded
def test_every_call_of_ours(case: Any) -> None:
    case.call_and_validate(excluded_checks=_TOO_MUCH)


@PRAVEGAS.parametrize()
@bounded
def test_every_call_of_pravegas(case: Any) -> None:
    case.call_and_validate(excluded_checks=_TOO_MUCH_FOR_PRAVEGAS)
