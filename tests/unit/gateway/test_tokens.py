"""The tokens that clients get for the segment stores: which claims, and when there are any (security 3.4 and 4.2)."""

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

import grpc
import pytest
from support.tokens import claims_in, is_permitted, resources_in
from unit.gateway.conftest import Gateway
from unit.gateway.support import SYNC_INTERNAL, create_scope, create_stream, creation_started, failure, table_message
from unit.gateway.system import MemorySystem

from api_gateway.edge.reads import Reads
from api_gateway.pravega.handlers.tokens import TokenHandlers
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.segment import kvt_segment_name, segment_name
from sluice.security.caller import CALLER, Caller, ForbiddenError
from sluice.security.resources import Permission, stream_resource, table_resource
from sluice.security.tokens import TokenSigner

KEY = "k"
OPERATIONS = pb.StreamInfo.AccessOperation
INFO = pb.StreamInfo(scope="sc", stream="st")
STREAM = "prn::/scope:sc/stream:st"
READ_TABLE = {table_resource("sc", "kv"): Permission.READ}
WRITE_TABLE = {table_resource("sc", "kv"): Permission.READ_UPDATE}
WRITE_STREAM = {stream_resource("sc", "kv"): Permission.READ_UPDATE}


def info(stream: str = "st", access: "OPERATIONS" = pb.StreamInfo.READ_WRITE, scope: str = "sc") -> pb.StreamInfo:
    return pb.StreamInfo(scope=scope, stream=stream, accessOperation=access)


async def token_of(gateway: Gateway, request: pb.StreamInfo) -> str:
    return (await gateway.stub.getDelegationToken(request)).delegationToken


class TestWithoutAKey:
    async def test_a_token_is_empty_before_names_are_looked_at(self, gateway: Gateway) -> None:
        assert await token_of(gateway, pb.StreamInfo()) == ""
        assert await token_of(gateway, info(access=pb.StreamInfo.ANY)) == ""

    async def test_replies_carry_no_tokens(self, gateway: Gateway, stream: pb.StreamInfo) -> None:
        assert (await gateway.stub.getCurrentSegments(stream)).delegationToken == ""


@pytest.mark.parametrize("token_key", [KEY])
class TestWithAKey:
    @pytest.mark.parametrize(
        ("request_", "claims"),
        [
            (info(access=pb.StreamInfo.UNSPECIFIED), {STREAM: "READ_UPDATE"}),
            (info(access=pb.StreamInfo.READ), {STREAM: "READ"}),
            (info(access=pb.StreamInfo.WRITE), {STREAM: "READ_UPDATE"}),
            (info(access=pb.StreamInfo.READ_WRITE), {STREAM: "READ_UPDATE"}),
            (info(access=pb.StreamInfo.NONE), {STREAM: "NONE"}),
            (info("_RGg", pb.StreamInfo.READ_WRITE), {"prn::/scope:sc/stream:_RGg": "READ_UPDATE"}),
            (info("_RGg", pb.StreamInfo.UNSPECIFIED), {"prn::/scope:sc/stream:_RGg": "READ_UPDATE"}),
            (info("_RGg", pb.StreamInfo.READ), {"prn::/scope:sc/stream:_RGg": "READ"}),
            (info("_MARKst", pb.StreamInfo.NONE), {"prn::/scope:sc/stream:_MARKst": "READ"}),
            (
                info("my_group_kvtable", pb.StreamInfo.UNSPECIFIED),
                {"prn::/scope:sc/stream:my_group_kvtable": "READ_UPDATE"},
            ),
        ],
    )
    async def test_the_claim_follows_from_the_access_operation(
        self, gateway: Gateway, request_: pb.StreamInfo, claims: Mapping[str, str]
    ) -> None:
        """Whether there is such a stream does not matter."""
        assert resources_in(await token_of(gateway, request_), KEY) == claims

    async def test_a_token_counts_for_ten_minutes(self, gateway: Gateway) -> None:
        claims = claims_in(await token_of(gateway, INFO), KEY)
        assert claims["exp"] - claims["iat"] == 600

    async def test_the_name_of_a_table_opens_the_table_too(self, gateway: Gateway) -> None:
        await create_scope(gateway)
        await gateway.stub.createKeyValueTable(table_message())
        token = await token_of(gateway, info("kv"))
        assert is_permitted(token, KEY, kvt_segment_name("sc", "kv", 0), Permission.READ_UPDATE)
        assert is_permitted(token, KEY, segment_name("sc", "kv", 0), Permission.READ_UPDATE)
        other = await token_of(gateway, info("other"))
        assert not is_permitted(other, KEY, kvt_segment_name("sc", "other", 0), Permission.READ)

    @pytest.mark.parametrize(
        "request_",
        [
            pb.StreamInfo(scope="sc"),
            pb.StreamInfo(stream="st"),
            info(access=pb.StreamInfo.ANY),
            info(access=99),  # type: ignore[arg-type]
            info("a/"),
            info("/scope:other"),
            info(scope="stream:other"),
        ],
    )
    async def test_what_names_no_stream_or_no_access_is_refused(
        self, gateway: Gateway, request_: pb.StreamInfo
    ) -> None:
        assert await failure(gateway.stub.getDelegationToken(request_)) == SYNC_INTERNAL

    async def test_of_the_systems_scope_only_streams_are_opened(self, gateway: Gateway) -> None:
        reports = await token_of(gateway, info("_requeststream", pb.StreamInfo.WRITE, "_system"))
        assert is_permitted(reports, KEY, segment_name("_system", "_requeststream", 0), Permission.READ_UPDATE)
        for name in ("containers", "_tables"):
            code, _ = await failure(gateway.stub.getDelegationToken(info(name, scope="_system")))
            assert code is grpc.StatusCode.NOT_FOUND
        config = pb.StreamConfig(streamInfo=info("containers", scope="_system"))
        config.scalingPolicy.minNumSegments = 1
        assert (await gateway.stub.createStream(config)).status == pb.CreateStreamStatus.SUCCESS
        assert await token_of(gateway, info("containers", pb.StreamInfo.READ_WRITE, "_system")) == ""

    async def test_replies_carry_tokens_for_clients_that_ask_for_none(
        self, gateway: Gateway, stream: pb.StreamInfo
    ) -> None:
        stub = gateway.stub
        await gateway.stub.createKeyValueTable(table_message())
        # `from` is a keyword of Python.
        between = pb.StreamCutRange(**{"streamInfo": INFO, "from": {0: 0, 1: 0}})  # type: ignore[arg-type]
        replies: dict[str, Any] = {
            "getCurrentSegments": await stub.getCurrentSegments(INFO),
            "getSegments": await stub.getSegments(pb.GetSegmentsRequest(streamInfo=INFO)),
            "getEpochSegments": await stub.getEpochSegments(pb.GetEpochSegmentsRequest(streamInfo=INFO)),
            "getSegmentsBetween": await stub.getSegmentsBetween(between),
            "createTransaction": await stub.createTransaction(pb.CreateTxnRequest(streamInfo=INFO, lease=10_000)),
            "getCurrentSegmentsKeyValueTable": await stub.getCurrentSegmentsKeyValueTable(
                pb.KeyValueTableInfo(scope="sc", kvtName="kv")
            ),
        }
        found = {rpc: resources_in(reply.delegationToken, KEY) for rpc, reply in replies.items()}
        expected = {rpc: {STREAM: "READ_UPDATE"} for rpc in replies}
        expected["getSegmentsBetween"] = {STREAM: "READ"}
        expected["getCurrentSegmentsKeyValueTable"] = {"prn::/scope:sc/key-value-table:kv": "READ_UPDATE"}
        assert found == expected

    async def test_who_asks_for_segments_to_no_end_gets_no_token(self, gateway: Gateway, stream: pb.StreamInfo) -> None:
        nothing = info(access=pb.StreamInfo.NONE)
        assert (await gateway.stub.getCurrentSegments(nothing)).delegationToken == ""
        assert (await gateway.stub.getSegments(pb.GetSegmentsRequest(streamInfo=nothing))).delegationToken == ""

    async def test_successors_carry_no_token(self, gateway: Gateway, stream: pb.StreamInfo) -> None:
        successors = gateway.stub.getSegmentsImmediatelyFollowing
        assert (await successors(pb.SegmentId(streamInfo=INFO, segmentId=0))).delegationToken == ""

    async def test_the_segments_of_a_groups_state_carry_the_groups_claim(self, gateway: Gateway) -> None:
        await create_scope(gateway)
        await create_stream(gateway, "_RGg")
        reply = await gateway.stub.getCurrentSegments(pb.StreamInfo(scope="sc", stream="_RGg"))
        assert resources_in(reply.delegationToken, KEY) == {"prn::/scope:sc/reader-group:g": "READ_UPDATE"}


async def claims_of(system: MemorySystem, access: Mapping[str, Permission], request: pb.StreamInfo) -> Iterable[str]:
    """The resources in the token that a caller with this access is given."""
    tokens = TokenSigner(KEY.encode(), 600, system.runtime.clock.now_ms)
    handler = TokenHandlers(Reads(system.runtime.journal), tokens)
    before = CALLER.set(Caller("ann", lambda resource: access.get(resource, Permission.NONE)))
    try:
        return list(resources_in((await handler.token(request, None)).delegationToken, KEY))  # type: ignore[arg-type]
    finally:
        CALLER.reset(before)


class TestOfACaller:
    """A token opens what its caller has the permission for, of the stream and the table of one name."""

    @pytest.fixture
    async def system(self, gateway: Gateway) -> MemorySystem:
        await create_scope(gateway)
        await gateway.stub.createKeyValueTable(table_message())
        return gateway.system

    @pytest.mark.parametrize(
        ("access", "claims"),
        [
            (WRITE_TABLE, ["prn::/scope:sc/stream:kv_kvtable"]),
            (WRITE_STREAM, ["prn::/scope:sc/stream:kv"]),
            (WRITE_TABLE | WRITE_STREAM, ["prn::/scope:sc/stream:kv", "prn::/scope:sc/stream:kv_kvtable"]),
        ],
    )
    async def test_only_what_the_caller_may_is_opened(
        self, system: MemorySystem, access: Mapping[str, Permission], claims: list[str]
    ) -> None:
        assert await claims_of(system, access, info("kv")) == claims

    async def test_to_read_a_table_does_not_suffice_to_write_it(self, system: MemorySystem) -> None:
        with pytest.raises(ForbiddenError):
            await claims_of(system, READ_TABLE, info("kv"))
        read = info("kv", pb.StreamInfo.READ)
        assert await claims_of(system, READ_TABLE, read) == ["prn::/scope:sc/stream:kv_kvtable"]

    async def test_a_table_of_an_internal_name_opens_no_internal_stream(self, system: MemorySystem) -> None:
        with pytest.raises(ForbiddenError):
            await claims_of(system, {table_resource("sc", "_RGg"): Permission.READ_UPDATE}, info("_RGg"))


@pytest.mark.usefixtures("virtual_time")
async def test_a_token_of_a_known_stream_is_given_while_the_journal_lags(deciding: MemorySystem) -> None:
    await deciding.append("sc/st", creation_started())
    tokens = TokenSigner(KEY.encode(), 600, deciding.runtime.clock.now_ms)
    handler = TokenHandlers(Reads(deciding.runtime.journal), tokens)
    partition = deciding.journal.partition_of("sc/st")
    deciding.connections.log.freeze(partition)
    deciding.land_without_entries(partition)
    reply = await asyncio.wait_for(handler.token(info(), None), 1)  # type: ignore[arg-type]
    assert resources_in(reply.delegationToken, KEY) == {STREAM: "READ_UPDATE"}
