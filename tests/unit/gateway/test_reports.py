"""What readers and writers report: subscribers' cuts, writers' times."""

from typing import Any

import pytest
from unit.gateway.conftest import Gateway
from unit.gateway.support import GROUP_ID, MANUAL, create_group, cut_message

from sluice.controller_api import controller_pb2 as pb

OTHER_ID = "00000000-0000-4000-8000-000000000001"
FIVE = {0: 5, 1: 5}


def _cut(cut: dict[int, int], stream: str = "st", **changed: Any) -> pb.SubscriberStreamCut:
    given = {"subscriber": "sc/rg", "readerGroupId": GROUP_ID, **changed}
    return pb.SubscriberStreamCut(streamCut=cut_message(cut, stream), **given)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (_cut({0: 6, 1: 5}), "SUCCESS"),
        (_cut({0: 6, 1: -1}), "STREAM_CUT_NOT_VALID"),
        (_cut(FIVE, readerGroupId=GROUP_ID.upper()), "SUCCESS"),
        (_cut(FIVE, generation=-1), "GENERATION_MISMATCH"),
        # What is malformed matters only behind what is not there.
        (_cut({}, stream="none", readerGroupId="x"), "STREAM_NOT_FOUND"),
        (_cut({}, subscriber="sc/other", readerGroupId="x"), "SUBSCRIBER_NOT_FOUND"),
        (_cut({}, readerGroupId=OTHER_ID), "SUBSCRIBER_NOT_FOUND"),
        (_cut({}, generation=1), "GENERATION_MISMATCH"),
    ],
)
@pytest.mark.usefixtures("stream")
async def test_a_cut_is_taken_or_refused(gateway: Gateway, request_: pb.SubscriberStreamCut, status: str) -> None:
    await create_group(gateway, retentionType=MANUAL)
    assert (await gateway.stub.updateSubscriberStreamCut(_cut(FIVE))).status == pb.UpdateSubscriberStatus.SUCCESS
    answer = await gateway.stub.updateSubscriberStreamCut(request_)
    assert pb.UpdateSubscriberStatus.Status.Name(answer.status) == status
