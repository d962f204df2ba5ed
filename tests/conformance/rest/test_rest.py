"""Every case of the REST API, asked of every target."""

import pytest

from conformance.case import ASKED, PEER, Case
from conformance.rest.table import CASES
from conformance.running import Runner

pytestmark = [
    pytest.mark.integration,
    # The first one waits for everything to start, and for the peer's jars to be fetched where they are not there yet.
    pytest.mark.timeout(900),
]


@pytest.mark.parametrize(
    ("runner", "case"),
    [
        pytest.param(target, case, id=f"{target}-{case.name}")
        for target in ASKED
        for case in CASES
        if not (target == PEER and case.peer_not_asked)
    ],
    indirect=["runner"],
    scope="session",
)
def test_answers(runner: Runner, case: Case) -> None:
    runner.check(case)
