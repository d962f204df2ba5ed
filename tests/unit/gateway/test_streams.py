"""RPCs on streams as a whole."""

from unit.gateway.conftest import Gateway

from api_gateway.pravega.handlers.submitting import REASON
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.scope.commands import CreateScope
from sluice.domain.stream.commands import CreateStream, SealStream
from sluice.kafka.topics import REQUESTS_STREAMS


async def test_a_refusal_says_why_in_the_trailing_metadata(gateway: Gateway, stream: pb.StreamInfo) -> None:
    call = gateway.stub.truncateStream(pb.StreamCut(streamInfo=stream, cut={0: 999, 1: 0}))
    assert (await call).status == pb.UpdateStreamStatus.FAILURE
    why = dict(await call.trailing_metadata())[REASON]
    assert why == "the cut is at offset 999 of segment sc/st/0.#epoch.0, which has 0 bytes"


async def test_requests_go_to_their_topic_under_the_key_they_belong_to(gateway: Gateway, stream: pb.StreamInfo) -> None:
    await gateway.stub.sealStream(stream)
    assert [topic for topic, _ in gateway.sent] == [REQUESTS_STREAMS.name] * 3
    assert [(type(r.command), r.command.key) for _, r in gateway.sent] == [
        (CreateScope, "sc"),
        (CreateStream, "sc/st"),
        (SealStream, "sc/st"),
    ]
    assert len({r.id for _, r in gateway.sent}) == 3
