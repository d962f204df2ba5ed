"""Segment stores that verify tokens, and tokens of clients that count for five seconds."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from math import inf
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from integration.test_java_client import JavaClient, build
from support.controller import Controller, config, controller, info, unique
from support.group_reader import next_events
from support.health import readiness
from support.pravega import check_exactly_once, manager, read_all
from support.transactions import Transactions
from support.wait import eventually_async
from support.writer import WriterProcess
from typer.testing import CliRunner

from harness import System, eventually
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.segment import kvt_segment_name, segment_name
from sluice.pravega import AccessDenied, Host, SegmentStoreClient, TryLater
from sluice.pravega.tokens import NO_TOKENS, Tokens, expiry_of
from sluice.pravega.wire.fields import TableEntry, TableKey
from sluice_cli.main import app
from sluice_client import Event, GroupConfig, create_reader_group, open_client, open_reader
from sluice_local.settings import LocalSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

KEY = "a key of the stores and of the services"
TTL_S = 5
ATTEMPTS = 5
"""How often something is tried with a token, which a machine that stands still may outlive."""
LONG_MS = 60_000
"""A lease that does not end before its transaction does."""
SERVICES = ("stream-workflows-0", "txn-manager-0", "api-gateway-0")
DEADLINE_S = 120.0


@dataclass(frozen=True)
class Verifying:
    """A system whose stores verify tokens, and the file with the services' key."""

    system: System
    key_file: Path


@pytest.fixture(scope="module")
def verifying(runs_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verifying]:
    key_file = tmp_path_factory.mktemp("keys") / "token.key"
    key_file.write_text(KEY)
    options = {
        "autoScale.controller.connect.security.auth.enable": "true",
        "autoScale.security.auth.token.signingKey.basis": KEY,
    }
    system = System(runs_folder / "delegation-tokens", segment_stores=1, segment_store_options=options, partitions=4)
    for service in SERVICES:
        system.configure(service, {"SLUICE_TOKEN_KEY_FILE": str(key_file), "SLUICE_TOKEN_TTL_S": str(TTL_S)})
    with system:
        yield Verifying(system, key_file)


@pytest.fixture
def gateway(verifying: Verifying) -> Iterator[Controller]:
    with controller(verifying.system.grpc_address) as client:
        yield client


@pytest.fixture
def scope(gateway: Controller) -> str:
    scope = unique("tokens")
    assert gateway.create_scope(scope) == "SUCCESS"
    return scope


class Given:
    """One token for everything."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def for_request(self, _segment: str) -> str:
        return self._token

    async def for_append(self, _segment: str) -> str:
        return self._token


def token_of(gateway: Controller, scope: str, name: str, access: pb.StreamInfo.AccessOperation) -> Callable[[], Tokens]:
    """A new one at each call."""
    request = pb.StreamInfo(scope=scope, stream=name, accessOperation=access)
    return lambda: Given(gateway.call("getDelegationToken", request).delegationToken)


def first_token(gateway: Controller, scope: str) -> str:
    """One as young as those of clients that begin now."""
    request = pb.StreamInfo(scope=scope, stream="st", accessOperation=pb.StreamInfo.READ)
    return str(gateway.call("getDelegationToken", request).delegationToken)


async def on_store(
    verifying: Verifying, tokens: Callable[[], Tokens], work: Callable[[SegmentStoreClient], Awaitable[None]]
) -> None:
    """Do something at the one segment store, with these tokens; with new ones if those had expired by then."""
    address, _, port = verifying.system.segment_store_addresses[0].rpartition(":")
    host, containers = Host(address, int(port)), LocalSettings().container_count
    for left in reversed(range(ATTEMPTS)):
        store = SegmentStoreClient(lambda _: host, containers, tokens=tokens())
        try:
            await work(store)
            return
        except TryLater:
            if not left:
                raise
        finally:
            await store.close()


async def test_a_token_opens_what_it_says_and_no_more(verifying: Verifying, gateway: Controller, scope: str) -> None:
    assert gateway.create_stream(scope, "st") == "SUCCESS"
    segment = segment_name(scope, "st", 0)

    async def nothing(store: SegmentStoreClient) -> None:
        with pytest.raises(AccessDenied):
            await store.segment_info(segment)

    async def read(store: SegmentStoreClient) -> None:
        assert (await store.segment_info(segment)).length == 0
        with pytest.raises(AccessDenied):
            await store.append(segment, UUID(int=1), b"event")

    async def write(store: SegmentStoreClient) -> None:
        assert await store.append(segment, UUID(int=1), b"event") > 0

    await on_store(verifying, lambda: NO_TOKENS, nothing)
    await on_store(verifying, token_of(gateway, scope, "other", pb.StreamInfo.READ_WRITE), nothing)
    await on_store(verifying, token_of(gateway, scope, "st", pb.StreamInfo.READ), read)
    await on_store(verifying, token_of(gateway, scope, "st", pb.StreamInfo.WRITE), write)


async def test_the_name_of_a_key_value_table_opens_its_segments(
    verifying: Verifying, gateway: Controller, scope: str
) -> None:
    table = pb.KeyValueTableConfig(scope=scope, kvtName="kv", partitionCount=1, primaryKeyLength=4)
    assert gateway.status("createKeyValueTable", table) == "SUCCESS"
    segment = kvt_segment_name(scope, "kv", 0)

    async def use(store: SegmentStoreClient) -> None:
        await store.update_table_entries(segment, [TableEntry(TableKey(b"key1"), b"value")])
        assert [entry.value for entry in await store.read_table(segment, [b"key1"])] == [b"value"]

    await on_store(verifying, token_of(gateway, scope, "kv", pb.StreamInfo.READ_WRITE), use)
    assert gateway.status("deleteKeyValueTable", pb.KeyValueTableInfo(scope=scope, kvtName="kv")) == "SUCCESS"


async def test_workflows_and_the_client_library_work(verifying: Verifying, gateway: Controller, scope: str) -> None:
    assert gateway.create_stream(scope, "st") == "SUCCESS"
    async with open_client(verifying.system.grpc_address) as client:
        stream = await client.revisioned_stream(scope, "st")
        expires_at = expiry_of(first_token(gateway, scope))
        count = 0

        async def outlives_it() -> bool:
            nonlocal count
            await stream.append(b"%d" % count)
            count += 1
            return time.time() > expires_at + 1

        await eventually_async(outlives_it, DEADLINE_S, "the client's first token has expired")
        entries = [entry async for _, entry in stream.read(await stream.head())]
    assert entries == [b"%d" % number for number in range(count)]
    transactions = Transactions(gateway, scope)
    committed, aborted = transactions.open(LONG_MS), transactions.open(LONG_MS)
    transactions.commit(committed)
    transactions.abort(aborted)
    transactions.await_state(committed, "COMMITTED")
    transactions.await_state(aborted, "ABORTED")
    length = 0

    async def measure(store: SegmentStoreClient) -> None:
        nonlocal length
        length = (await store.segment_info(segment_name(scope, "st", 0))).length

    await on_store(verifying, token_of(gateway, scope, "st", pb.StreamInfo.READ), measure)
    cut = pb.StreamCut(streamInfo=info(scope, "st"), cut={0: length})
    assert gateway.status("truncateStream", cut) == "SUCCESS"
    ranges = [pb.ScaleRequest.KeyRangeEntry(start=0, end=0.5), pb.ScaleRequest.KeyRangeEntry(start=0.5, end=1)]
    scaled = pb.ScaleRequest(streamInfo=info(scope, "st"), sealedSegments=[0], newKeyRanges=ranges)
    assert gateway.call("scale", scaled).status == pb.ScaleResponse.STARTED
    eventually(lambda: len(gateway.segments(scope, "st")) == 2, DEADLINE_S, "the scale is done")
    assert gateway.seal(scope, "st") == gateway.delete(scope, "st") == "SUCCESS"


async def test_nothing_is_lost_while_tokens_expire_under_a_writer_and_a_reader(
    verifying: Verifying, gateway: Controller, scope: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gateway.create_stream(scope, "st", 2) == "SUCCESS"
    for name, value in (("method", "Basic"), ("username", "any"), ("password", "any")):
        monkeypatch.setenv(f"pravega_client_auth_{name}", value)
    address, written = verifying.system.grpc_address, dict[str, int]()
    # The client's threads end with its manager.
    streams = manager(address)
    group = streams.create_reader_group("rg", scope, "st")
    reading = asyncio.create_task(read_all(group, lambda: sum(written.values()) or inf, DEADLINE_S))
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(open_client(address))
        await create_reader_group(client, scope, "typed", GroupConfig(starts={f"{scope}/st": None}))
        typed = await stack.enter_async_context(await open_reader(client, scope, "typed", "reader"))
        read: list[Event] = []
        writers = [stack.enter_context(WriterProcess(address, scope, "st", name)) for name in ("a", "b")]
        expires_at = expiry_of(first_token(gateway, scope))

        async def outlive_several() -> bool:
            assert all(writer.running for writer in writers), "a writer has failed"
            read.extend(await next_events(typed, 100, DEADLINE_S))
            return time.time() > expires_at + 3 * TTL_S

        await eventually_async(outlive_several, DEADLINE_S, "tokens have expired four times over")
        for writer in writers:
            writer.stop()
        counts = {writer.name: await asyncio.to_thread(writer.finish, DEADLINE_S) for writer in writers}
        # A reader that has them all waits for one more.
        written |= counts | {"last": 1}
        last = stack.enter_context(WriterProcess(address, scope, "st", "last", 1))
        await asyncio.to_thread(last.finish, DEADLINE_S)
        read += await next_events(typed, sum(written.values()) - len(read), DEADLINE_S)
        for events in (await reading, [event.data.decode() for event in read]):
            check_exactly_once(events, written)


@pytest.fixture(scope="module")
def java_client(verifying: Verifying, runs_folder: Path) -> Iterator[JavaClient]:
    classpath = build(LocalSettings().home / "java-client")
    controller = f"tcp://{verifying.system.grpc_address}"
    with JavaClient(classpath, controller, runs_folder / "java-client-tokens.log") as client:
        yield client


@pytest.mark.parametrize("scenario", ["KeyValueTables", "ReadingExactlyOnce", "TransactionAcrossScale", "ByteStreams"])
def test_the_java_client_works(java_client: JavaClient, scenario: str) -> None:
    problem = java_client.problem(scenario)
    assert problem is None, problem


def test_verify_has_the_key_of_the_environment(verifying: Verifying, gateway: Controller, scope: str) -> None:
    assert gateway.create_stream(scope, "st") == "SUCCESS"
    system = verifying.system
    environment = {"SLUICE_API": system.rest_url, "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap}
    command = ["verify", "--scope", scope]
    result = CliRunner().invoke(app, command, env=environment)
    assert result.exit_code != 0 and "refuses our delegation token" in result.stdout
    result = CliRunner().invoke(app, command, env={**environment, "SLUICE_TOKEN_KEY": KEY})
    assert result.exit_code == 0, result.stdout


def test_with_another_key_work_waits_and_says_why_until_the_key_is_right(
    verifying: Verifying, gateway: Controller, scope: str
) -> None:
    """All with a file that is replaced, and no restart."""
    system = verifying.system
    verifying.key_file.write_text("another key")
    why = "refuses our delegation token: is the signing key the same?"

    def is_degraded_but_ready() -> bool:
        status, text = readiness(system, "stream-workflows-0")
        return status == httpx.codes.OK and why in text

    eventually(is_degraded_but_ready, DEADLINE_S, "the service is degraded, but ready")
    created = gateway.begin("createStream", config(scope, "st"), DEADLINE_S)

    def last_errors() -> list[str]:
        found = httpx.get(f"{system.rest_url}/sluice/v1/workflows", params={"scope": scope}, timeout=60).json()
        return [item["lastError"] for item in found["items"]]

    eventually(lambda: any(why in error for error in last_errors()), DEADLINE_S, "the workflow says why it waits")
    assert not created.done()
    verifying.key_file.write_text(KEY)
    assert created.result().status == pb.CreateStreamStatus.SUCCESS
    eventually(lambda: why not in readiness(system, "stream-workflows-0")[1], DEADLINE_S, "it is well again")
