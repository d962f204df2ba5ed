"""The cuts that subscribers report, over all refusals in their order (controller-grpc-api 5.8)."""

from typing import Any

import msgspec
import pytest
from support.stream_log import STREAM, StreamLog

from sluice.domain.stream.commands import AddSubscriber, RemoveSubscriber, UpdateSubscriberCut

FIVE = {0: 5, 1: 5}
REPORT = UpdateSubscriberCut(*STREAM, "sc/rg", "id", 3, FIVE)


def subscribed() -> StreamLog:
    log = StreamLog(segments=2)
    log.decide(AddSubscriber(*STREAM, "sc/rg", "id", 3))
    return log


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, "SUCCESS"),
        ({"cut": {0: 6, 1: 5}}, "SUCCESS"),
        ({"stream": "none", "cut": {7: 0}}, "STREAM_NOT_FOUND"),
        ({"subscriber": "sc/other", "cut": {7: 0}}, "SUBSCRIBER_NOT_FOUND"),
        ({"group_id": "other", "generation": 2}, "SUBSCRIBER_NOT_FOUND"),
        ({"generation": 2, "cut": {7: 0}}, "GENERATION_MISMATCH"),
        ({"generation": 4}, "GENERATION_MISMATCH"),
        ({"cut": {0: 5}}, "STREAM_CUT_NOT_VALID"),
        ({"cut": {0: 4, 1: 6}}, "STREAM_CUT_NOT_VALID"),
        # The original says FAILURE to these, which clients take for a reason to try again.
        ({"cut": {}}, "STREAM_CUT_NOT_VALID"),
        ({"cut": {0: 5, 1: 5, 7: 0}}, "STREAM_CUT_NOT_VALID"),
        ({"cut": {0: -1, 1: -1}}, "STREAM_CUT_NOT_VALID"),
    ],
)
def test_a_cut_is_taken_or_refused(changed: dict[str, Any], status: str) -> None:
    log = subscribed()
    assert log.ask(REPORT).status == "SUCCESS"
    report = msgspec.structs.replace(REPORT, **changed)
    assert log.ask(report).status == status
    assert log.stream.subscribers["sc/rg"].cut == (report.cut if status == "SUCCESS" else FIVE)


@pytest.mark.parametrize(
    ("generation", "group_id", "stays"), [(3, "id", False), (3, "", False), (3, "x", True), (2, "id", True)]
)
def test_a_subscriber_is_removed_for_its_own_group_alone(generation: int, group_id: str, stays: bool) -> None:
    log = subscribed()
    log.decide(RemoveSubscriber(*STREAM, "sc/rg", generation, group_id))
    assert ("sc/rg" in log.stream.subscribers) is stays
