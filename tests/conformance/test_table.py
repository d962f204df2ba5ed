"""The table itself: what it must cover, and that no case hides behind another."""

from collections import Counter

from conformance.case import PEER, SLUICE
from conformance.rest.table import CASES as REST_CASES
from conformance.table import CASES
from sluice.controller_api import controller_pb2 as pb


def test_every_name_is_that_of_one_case() -> None:
    names = Counter(case.name for case in (*CASES, *REST_CASES))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_call_is_in_the_table() -> None:
    called = {step.title for case in CASES for step in case.steps}
    calls = {method.name for method in pb.DESCRIPTOR.services_by_name["ControllerService"].methods}
    assert calls - called == set()


def test_more_than_half_of_the_cases_go_wrong() -> None:
    assert len(CASES) >= 150
    assert sum(case.is_unhappy for case in CASES) > len(CASES) / 2


def test_a_difference_is_one() -> None:
    for case in (*CASES, *REST_CASES):
        for step in case.differences:
            assert step.expected[PEER] != step.expected[SLUICE], f"{case.name}: {step.title}"
