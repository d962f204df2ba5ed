"""Who subscribes, and the cuts that subscribers report, over all refusals in their order (controller-grpc-api 5.8)."""

from typing import Any

import msgspec
import pytest
from support.stream_log import STREAM, StreamLog

from sluice.domain.config import GroupRetention, ReaderGroupConfig, RetentionPolicy, RetentionType, StreamConfig
from sluice.domain.decision import Context
from sluice.domain.errors import ViewBehindError
from sluice.domain.ids import GroupId
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup
from sluice.domain.reader_group.decide import decide_add_subscriber, finish_create
from sluice.domain.stream.commands import AddSubscriber, RemoveSubscriber, TruncateStream, UpdateSubscriberCut

FIVE = {0: 5, 1: 5}
CONFIG = ReaderGroupConfig("id", {"sc/st": {}}, retention=GroupRetention.MANUAL, generation=3)
ADD = AddSubscriber(*STREAM, "sc/rg", "id", 3)
REPORT = UpdateSubscriberCut(*STREAM, "sc/rg", "id", 3, FIVE)


def subscribed() -> StreamLog:
    log = StreamLog(segments=2)
    log.decide(CreateReaderGroup("sc", "rg", CONFIG))
    log.decide(ADD)
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


def test_who_subscribes_is_decided_by_a_view_of_the_group_that_has_caught_up() -> None:
    log = StreamLog()
    with pytest.raises(ViewBehindError, match="those of the partitions of sc/_RGrg"):
        decide_add_subscriber(log, ADD, Context(1))


@pytest.mark.parametrize(
    ("group", "command", "added"),
    [
        ({}, {}, True),
        ({}, {"subscriber": "sc/gone"}, False),
        ({"id": "new"}, {}, False),
        ({"generation": 4}, {}, False),
        ({"starts": {"sc/other": {}}}, {}, False),
        ({"retention": GroupRetention.NONE}, {}, False),
    ],
)
def test_a_group_is_added_if_it_is_as_it_was_when_it_asked(
    group: dict[str, Any], command: dict[str, Any], added: bool
) -> None:
    log = StreamLog()
    log.decide(CreateReaderGroup("sc", "rg", msgspec.structs.replace(CONFIG, **group)))
    log.decide(msgspec.structs.replace(ADD, **command))
    assert bool(log.stream.subscribers) is added


def test_what_a_group_asked_for_counts_no_more_once_it_is_being_deleted() -> None:
    log = subscribed()
    log.apply(finish_create(log, Context(1), GroupId("sc", "rg"), []))
    log.decide(DeleteReaderGroup("sc", "rg"))
    log.decide(RemoveSubscriber(*STREAM, "sc/rg", 3, "id"))
    log.decide(ADD)
    assert not log.stream.subscribers


def test_a_truncation_that_was_decided_before_a_group_subscribed_is_refused() -> None:
    log, policy = subscribed(), RetentionPolicy(RetentionType.SIZE, 0, 0)
    log.stream.config = StreamConfig(retention=policy)
    reply = log.ask(TruncateStream(*STREAM, FIVE, policy))
    assert reply.status == "FAILURE" and "since it was decided: sc/rg" in reply.reason
    assert log.decide(TruncateStream(*STREAM, FIVE, policy, log.stream.subscriptions)).reply is None
