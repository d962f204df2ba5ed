"""Chance of the tests here: the same where changes are judged, other each time by hand; `SIM_CHANCE` says it again."""

import os
import random
from collections.abc import Iterator

import pytest
from simulation.chance import seeded
from support.effort import JUDGED

_GIVEN = os.environ.get("SIM_CHANCE")


@pytest.fixture(autouse=True)
def chance(request: pytest.FixtureRequest) -> Iterator[None]:
    """Runs by seeds, and examples, begin it anew by themselves."""
    seed = int(_GIVEN) if _GIVEN else 0 if JUDGED else random.SystemRandom().getrandbits(32)
    request.node.add_report_section(
        "setup", "chance", f"run it again: SIM_CHANCE={seed} pytest '{request.node.nodeid}'"
    )
    with seeded(seed):
        yield
