"""A system as `make run SECURE=1` starts it: unmodified clients work with it, and only as far as they may.

The clients are the users that `sluice security init` makes, each with the smallest permissions for its work. After all
of it nothing secret is in logs, topics, command lines, or what the command line shows.
"""

import asyncio
import socket
import ssl
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from integration.test_java_client import JavaClient, build
from support.controller import config, info
from support.group_reader import next_events
from support.pravega import check_exactly_once, read_all
from support.secured_system import Secured, archived, command_lines, logs, records
from support.wait import SOON_S, eventually
from support.writer import WriterProcess

from harness import System
from sluice.controller_api import controller_pb2 as pb
from sluice.domain.config import ScalingPolicy, StreamConfig
from sluice.security.authority import make_authority, make_certificate
from sluice.security.folder import AUTO_SCALER, LOCAL_NAMES, File
from sluice_client import (
    Access,
    AccessRefused,
    GroupConfig,
    create_reader_group,
    delete_reader_group,
    open_client,
    open_reader,
    open_reader_group,
)
from sluice_local.home import HOST, NAME
from sluice_local.settings import LocalSettings

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SCOPE = "demo"
STREAM = "python"
TYPED = "typed"
REPLACED = "replaced"
READS_S = 60.0
SCENARIOS = ("secured.SmallestPermissions", "KeyValueTables", "TransactionLife", "StateSynchronization")
PYTHON_READER = (
    f"prn::/scope:{SCOPE},READ;prn::/scope:{SCOPE}/stream:{STREAM},READ_UPDATE;"
    f"prn::/scope:{SCOPE}/stream:group_kvtable,READ_UPDATE"
)
"""What the PyPI client needs to read through the group `group`: it never says that it only reads."""
GROUP_READER = (
    f"prn::/scope:{SCOPE},READ;prn::/scope:{SCOPE}/stream:{TYPED},READ;prn::/scope:{SCOPE}/reader-group:*,READ"
)
"""What the client library needs to read a stream in groups, as Java's client does."""
TABLES = f"prn::/scope:{SCOPE}/key-value-table:table,READ_UPDATE;prn::/scope:{SCOPE}/stream:table_kvtable,READ"
"""What the Java client needs for the table `table`; to it the segments of a table are those of a stream."""


@pytest.fixture(scope="module")
def secured(runs_folder: Path) -> Iterator[Secured]:
    with System(runs_folder / "secured-system", secure=True, segment_stores=1, partitions=4) as system:
        secured = Secured(system)
        secured.add_user("python-reader", PYTHON_READER)
        secured.add_user("group-reader", GROUP_READER)
        secured.add_user("tables", TABLES)
        streams = secured.manager("admin")
        assert streams.create_scope(SCOPE)
        assert streams.create_stream(SCOPE, STREAM, 2)
        yield secured


@pytest.fixture(scope="module")
def java(secured: Secured, runs_folder: Path) -> Iterator[JavaClient]:
    """The unmodified scenarios as the administrator, whose credentials and authority are those of the process."""
    options = (
        f"-Djavax.net.ssl.trustStore={secured.folder / File.TRUST_STORE}",
        f"-Dsluice.security={secured.folder}",
    )
    classpath, log = build(LocalSettings().home / "java-client"), runs_folder / "secured-java-client.log"
    with JavaClient(classpath, secured.controller, log, options, secured.java_environment("admin")) as client:
        yield client


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_java_client(java: JavaClient, scenario: str) -> None:
    problem = java.problem(scenario)
    if problem is not None:
        pytest.fail(f"{scenario}:\n{problem}", pytrace=False)


async def test_python_client_writes_and_reads_with_the_smallest_permissions(secured: Secured) -> None:
    writer = secured.manager("writer")
    events = writer.create_writer(SCOPE, STREAM)
    for number in range(10):
        events.write_event(f"{number}", "key")
    events.flush()
    transactions = writer.create_transaction_writer(SCOPE, STREAM, 1)
    transaction = transactions.begin_txn()
    transaction.write_event("10", "key")
    transaction.commit()
    eventually(lambda: transaction.is_open() is False, SOON_S, "the transaction is committed")
    reader = secured.manager("python-reader")
    group = reader.create_reader_group("group", SCOPE, STREAM)
    assert await read_all(group, 11, READS_S) == [str(number) for number in range(11)]


def test_python_client_may_not_do_more_than_that(secured: Secured) -> None:
    writer, reader = secured.manager("writer"), secured.manager("python-reader")
    with pytest.raises(Exception, match=r"(?i)permission"):
        writer.create_scope("other")
    with pytest.raises(Exception, match=r"(?i)permission"):
        writer.create_stream(SCOPE, "other", 1)
    with pytest.raises(Exception, match=r"(?i)permission"):
        reader.create_stream(SCOPE, "other", 1)


async def test_client_library_writes_and_reads_with_the_smallest_permissions(secured: Secured) -> None:
    async with secured.client("admin") as client:
        assert await client.streams.create_stream(SCOPE, TYPED, StreamConfig(ScalingPolicy(min_segments=2)))
    expected = [b"%d" % number for number in range(11)]
    async with secured.client("writer") as client:
        async with client.event_writer(SCOPE, TYPED) as writer:
            for event in expected[:-1]:
                await writer.write("key", event)
        async with await client.begin_transaction(SCOPE, TYPED) as transaction:
            transaction.add("key", expected[-1])
    async with secured.client("group-reader") as client:
        config = GroupConfig(starts={f"{SCOPE}/{TYPED}": None})
        assert await create_reader_group(client, SCOPE, "typed", config)
        group = await open_reader_group(client, SCOPE, "typed")
        async with await open_reader(client, SCOPE, "typed", "reader") as reader:
            assert [event.data for event in await next_events(reader, 11, READS_S)] == expected
            checkpoint = asyncio.create_task(group.checkpoint("by hand"))
            while not checkpoint.done():
                await reader.next(1.0)
            cut = (await checkpoint).cuts[f"{SCOPE}/{TYPED}"]
            assert sum(cut.offsets.values()) == sum(8 + len(event) for event in expected)
        assert await delete_reader_group(client, SCOPE, "typed")


async def test_client_library_says_what_its_user_may_not_do(secured: Secured) -> None:
    async with secured.client("admin") as client:
        await create_reader_group(client, SCOPE, "foreign", GroupConfig(starts={f"{SCOPE}/{STREAM}": None}))
    async with secured.client("group-reader") as client:
        denied = partial(pytest.raises, AccessRefused, match="PERMISSION_DENIED")
        with denied():
            await client.streams.create_stream(SCOPE, "other", StreamConfig())
        with denied():
            await client.streams.seal_stream(SCOPE, TYPED)
        with denied():
            await client.begin_transaction(SCOPE, TYPED)
        writer = client.event_writer(SCOPE, TYPED)
        writer.add(None, b"event")
        with denied():
            await writer.flush()
        async with await open_reader(client, SCOPE, "foreign", "reader") as reader:
            with denied():
                await reader.next(READS_S)
    async with open_client(secured.controller, access=Access(ca=f"{secured.authority}")) as client:
        with pytest.raises(AccessRefused, match="UNAUTHENTICATED"):
            await client.streams.create_scope("other")


OPERATIONS = {
    "createScope": pb.ScopeInfo(scope="other"),
    "createStream": config(SCOPE, "other"),
    "sealStream": info(SCOPE, STREAM),
    "deleteStream": info(SCOPE, STREAM),
    "createTransaction": pb.CreateTxnRequest(streamInfo=info(SCOPE, STREAM), lease=10_000),
    "listScopes": pb.ScopesRequest(),
}


@pytest.mark.parametrize("rpc", OPERATIONS)
def test_what_a_caller_may_not_do_is_refused(secured: Secured, rpc: str) -> None:
    with secured.statuses() as status:
        assert status.of("reader", rpc, OPERATIONS[rpc]) == "PERMISSION_DENIED"
        assert status.of(None, rpc, OPERATIONS[rpc]) == "UNAUTHENTICATED"
        for wrong in ("Basic cmVhZGVyOndyb25n", "Basic bm8gY29sb24=", "Basic %%%"):
            assert status.with_header(wrong, rpc, OPERATIONS[rpc]) == "UNAUTHENTICATED"


def test_rest_asks_the_same_users(secured: Secured) -> None:
    reader, admin = (f"Basic {secured.credentials(user)}" for user in ("reader", "admin"))
    assert secured.http_status("/v1/scopes", None) == 401
    assert secured.http_status("/v1/scopes", "Basic cmVhZGVyOndyb25n") == 401
    assert secured.http_status("/v1/scopes", reader) == 403
    assert secured.http_status(f"/v1/scopes/{SCOPE}", reader) == 200
    assert secured.http_status("/v1/scopes", admin) == 200
    eventually(lambda: secured.http_status("/readyz", None) == 200, SOON_S, "it is ready, and says so to all")


def test_segment_stores_report_their_load_as_a_user_of_their_own(secured: Secured) -> None:
    log = secured.system.log("segment-store-0").read_text()
    assert "UNAUTHENTICATED" not in log and "PERMISSION_DENIED" not in log
    with secured.statuses() as status:
        requests = pb.StreamInfo(scope="_system", stream="_requeststream", accessOperation=pb.StreamInfo.WRITE)
        assert status.of(AUTO_SCALER, "getDelegationToken", requests) == "OK"
        assert status.of(AUTO_SCALER, "getDelegationToken", info(SCOPE, STREAM)) == "PERMISSION_DENIED"


def test_a_client_that_does_not_know_the_authority_connects_to_nothing(secured: Secured) -> None:
    settings, strict = secured.system.settings, ssl.create_default_context()
    ours = (settings.grpc_port, settings.rest_port, settings.health_port, settings.segment_store_port)
    for port in (*ours, settings.kafka_port, settings.kafka_controller_port, settings.zookeeper_port):
        with socket.create_connection((HOST, port)) as connection, pytest.raises(ssl.SSLCertVerificationError):
            strict.wrap_socket(connection, server_hostname=NAME)
    with socket.create_connection((HOST, settings.redis_port)) as connection:
        connection.sendall(b"PING\r\n")
        assert connection.recv(7) == b"-NOAUTH"


def test_the_command_line_is_a_user_like_others(secured: Secured) -> None:
    assert secured.sluice("admin", f"stream show {SCOPE}/{STREAM}")[0] == 0
    assert secured.sluice("admin", f"stream write {SCOPE}/{STREAM} --key k written")[0] == 0
    assert secured.sluice("admin", "verify")[0] == 0
    assert secured.sluice("reader", f"stream seal {SCOPE}/{STREAM}")[0] == 1


async def test_password_file_authorities_and_certificates_are_replaced_under_a_writer(secured: Secured) -> None:
    folder, system, written = secured.folder, secured.system, dict[str, int]()
    accounts, authority = folder / File.ACCOUNTS, secured.authority
    address = (NAME, system.settings.grpc_port)
    assert secured.manager("admin").create_stream(SCOPE, REPLACED, 2)
    second = folder / "second.pem"
    make_authority(second, folder / "second.key")
    # A client reads once whom it trusts: so both authorities come before the first certificate of the second one.
    authority.write_text(authority.read_text() + second.read_text())
    with secured.as_user("writer"), WriterProcess(secured.controller, SCOPE, REPLACED, "steady") as writer:
        writes_on(writer)
        good = accounts.read_text()
        accounts.write_text("no account")
        eventually(lambda: "password file" in secured.readiness(), SOON_S, "the file is refused")
        writes_on(writer)
        accounts.write_text("".join(reversed(good.splitlines(keepends=True))))
        eventually(lambda: "password file" not in secured.readiness(), SOON_S, "this one is used")
        writes_on(writer)
        make_certificate(second, folder / "second.key", LOCAL_NAMES, folder / File.CERTIFICATE, folder / File.KEY)
        eventually(lambda: is_trusted(address, second), SOON_S, "the gateway shows the new certificate")
        writes_on(writer)
        # All connections are made anew: those of the clients to the gateway, those of the services to the store.
        system.stop("api-gateway-0")
        system.start("api-gateway-0")
        writes_on(writer)
        system.stop("segment-store-0")
        system.start("segment-store-0")
        assert is_trusted((NAME, system.settings.segment_store_port), second)
        writes_on(writer)
        writer.stop()
        written["steady"] = await asyncio.to_thread(writer.finish, READS_S)
    # The client's threads end with its manager.
    admin = secured.manager("admin")
    group = admin.create_reader_group("replaced", SCOPE, REPLACED)
    check_exactly_once(await read_all(group, written["steady"], READS_S), written)


def writes_on(writer: WriterProcess) -> None:
    """Fail unless it goes on to write."""
    before = writer.acknowledged
    eventually(lambda: writer.acknowledged > before + 20 or not writer.running, READS_S, f"more than {before} events")
    assert writer.running, f"{writer.name} has ended: {writer.progress()}"


def is_trusted(address: tuple[str, int], authority: Path) -> bool:
    """Whether a server's certificate is of an authority."""
    context = ssl.create_default_context(cafile=str(authority))
    try:
        with socket.create_connection(address) as connection, context.wrap_socket(connection, server_hostname=NAME):
            return True
    except ssl.SSLCertVerificationError:
        return False


def test_nothing_secret_is_shown(secured: Secured, tmp_path: Path) -> None:
    system, diagnosis = secured.system, tmp_path / "diagnosis.tar.gz"
    commands = (
        f"stream list {SCOPE}",
        f"stream show {SCOPE}/{STREAM}",
        "member list",
        "workflow list",
        "dead-letter list",
        f"audit {SCOPE}/{STREAM}",
    )
    for line in (*commands, f"diagnose --output {diagnosis}"):
        code, text = secured.sluice("admin", f"{line} --json")
        assert code == 0, text
        assert secured.found_in([(line, text.encode())]) == []
    assert secured.found_in(archived(diagnosis)) == []
    assert secured.found_in(logs(system)) == []
    assert secured.found_in(command_lines(system)) == []
    found = list(records(secured.kafka_client()))
    assert {"sluice.journal", "sluice.requests.streams"} <= {topic for topic, _ in found}
    assert secured.found_in(found) == []
