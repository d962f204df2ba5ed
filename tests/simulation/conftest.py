"""Says with each test that fails from which chance it ran."""

import pytest
from simulation.chance import SEED


@pytest.fixture(autouse=True)
def chance(request: pytest.FixtureRequest) -> None:
    request.node.add_report_section(
        "setup", "chance", f"run it again: SIM_CHANCE={SEED} pytest '{request.node.nodeid}'"
    )
