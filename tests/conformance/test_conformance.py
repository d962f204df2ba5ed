"""Every case on every target, such as `peer-create_stream-empty_name` and `sluice-create_stream-empty_name`."""

import pytest

from conformance.case import CALLED_TARGETS, DEV, PEER, Case
from conformance.rest.table import CASES as REST_CASES
from conformance.running import Runner
from conformance.table import CASES

pytestmark = [
    pytest.mark.integration,
    # The first one waits for everything to start, and for the peer's jars to be fetched where they are not there yet.
    pytest.mark.timeout(900),
]


@pytest.mark.parametrize(
    ("runner", "case"),
    [
        pytest.param(target, case, id=f"{target}-{case.name}")
        for target in (*CALLED_TARGETS, DEV)
        for case in (*CASES, *REST_CASES)
        if not (target == PEER and case.peer_not_called)
    ],
    indirect=["runner"],
    scope="module",
)
def test_answers(runner: Runner, case: Case) -> None:
    runner.check(case)
