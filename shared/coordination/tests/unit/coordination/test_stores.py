"""Documents in memory, in a file, and in a real Redis; search servers have the suite among the integration tests."""

import asyncio
import fcntl
import json
import os
import signal
import ssl
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from redis.asyncio import Redis
from redis.exceptions import ClusterDownError, NoPermissionError, RedisError, ResponseError, TryAgainError
from support.certificates import Authority
from support.redis_server import PrivateRedis, private_redis
from support.wait import eventually
from unit.coordination.store_suite import DocumentStoreSuite

from sluice_coordination import open_store
from sluice_coordination.document import Document, Version
from sluice_coordination.errors import (
    ConflictError,
    CoordinationError,
    StoreFailedError,
    StoreHeldError,
    StoreUnavailableError,
)
from sluice_coordination.flat_file import FileStore
from sluice_coordination.memory import MemoryStore
from sluice_coordination.redis_store import RedisStore
from sluice_coordination.search_store import FORMAT
from sluice_coordination.store import DocumentStore


@pytest.fixture
def space() -> str:
    return f"space-{uuid.uuid4().hex}"


@pytest.fixture(scope="module")
def redis_server() -> Iterator[PrivateRedis]:
    with private_redis() as server:
        yield server


class TestMemoryStore(DocumentStoreSuite):
    @pytest.fixture
    async def store(self) -> AsyncIterator[DocumentStore]:
        async with open_store("memory:") as store:
            assert isinstance(store, MemoryStore)
            yield store


class TestFileStore(DocumentStoreSuite):
    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[DocumentStore]:
        async with open_store(f"file:{tmp_path}/documents.json", timeout_s=20) as store:
            assert isinstance(store, FileStore)
            yield store


class TestRedisStore(DocumentStoreSuite):
    @pytest.fixture
    async def store(self, redis_server: PrivateRedis) -> AsyncIterator[DocumentStore]:
        async with open_store(redis_server.url + "?namespace=tests", timeout_s=10) as store:
            assert isinstance(store, RedisStore)
            yield store


# --- the file


async def test_a_file_keeps_what_was_put(tmp_path: Path) -> None:
    path = tmp_path / "documents.json"
    store = await FileStore.open(path, 20)
    version = await store.put("a/b", {"n": 1}, None)
    await store.delete("a/b", version)
    version = await store.put("a/b", {"n": 2}, None)
    await store.close()
    again = await FileStore.open(path, 20)
    assert await again.get("a/b") == ({"n": 2}, version)
    assert await again.put("a/b", {}, version) > version
    await again.close()


async def test_a_file_is_for_its_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "documents.json"
    path.with_name("documents.json.new").touch(mode=0o644)
    store = await FileStore.open(path, 20)
    await store.put("a", {}, None)
    await store.close()
    assert modes_in(tmp_path) == {0o600}


def modes_in(folder: Path) -> set[int]:
    return {each.stat().st_mode & 0o777 for each in folder.iterdir()}


@pytest.mark.parametrize("name", ["team#7.json", "what?.json"])
async def test_a_file_has_the_whole_name_that_its_url_says(tmp_path: Path, name: str) -> None:
    async with open_store(f"file://{tmp_path}/{name}", timeout_s=20) as store:
        await store.put("a", {}, None)
    assert (tmp_path / name).exists()


async def test_a_second_user_of_the_file_is_refused_with_the_name_of_the_first(tmp_path: Path) -> None:
    path = tmp_path / "documents.json"
    store = await FileStore.open(path)
    with pytest.raises(StoreHeldError, match=rf"documents.json by pid {os.getpid()} on host .* since 20\d\d-.* UTC"):
        await FileStore.open(path)
    await store.close()
    await (await FileStore.open(path)).close()


_WRITER = """
import asyncio, sys
from sluice_coordination.flat_file import FileStore
async def main():
    store, version, number = await FileStore.open(sys.argv[1], 20), None, 0
    while True:
        number += 1
        version = await store.put("a", {"n": number, "fill": "x" * 20000}, version)
        print(number, flush=True)
asyncio.run(main())
"""


@pytest.mark.parametrize("attempt", range(2))
def test_a_file_survives_the_kill_of_its_writer(tmp_path: Path, attempt: int) -> None:
    path, output = tmp_path / "documents.json", tmp_path / "output"
    with output.open("wb") as file:
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=file)
    try:
        eventually(lambda: output.read_bytes().count(b"\n") >= 5, 60, "the writer writes")
        with pytest.raises(StoreHeldError, match=f"pid {writer.pid} "):
            asyncio.run(FileStore.open(path))
    finally:
        writer.send_signal(signal.SIGKILL)
        writer.wait(10)
    acknowledged = output.read_bytes().count(b"\n")
    found = asyncio.run(read_once(path))
    # The last write may have been done and not printed.
    assert found is not None and found.body["n"] in (acknowledged, acknowledged + 1)


async def read_once(path: Path) -> Document | None:
    store = await FileStore.open(path, 20)
    found = await store.get("a")
    await store.close()
    return found


async def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "documents.json"
    for text in ("", "{", json.dumps({"format": 2, "writes": 0, "documents": {}}), "[]"):
        path.write_text(text)
        with pytest.raises(StoreFailedError, match=r"documents\.json"):
            await FileStore.open(path)
        assert path.read_text() == text
    path.unlink()
    await (await FileStore.open(path)).close()


async def test_a_write_that_the_disk_refuses_is_not_seen(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    store = await FileStore.open(folder / "documents.json", 20)
    version = await store.put("a", {"n": 1}, None)
    (folder / "documents.json.new").mkdir()
    with pytest.raises(StoreUnavailableError):
        await store.put("a", {"n": 2}, version)
    assert await store.get("a") == ({"n": 1}, version)
    (folder / "documents.json.new").rmdir()
    await store.put("a", {"n": 2}, version)
    await store.close()


async def test_who_gives_up_on_a_write_to_the_file_leaves_it_to_be_done(tmp_path: Path) -> None:
    store = await FileStore.open(tmp_path / "documents.json", 20)
    writes = [asyncio.create_task(store.put(f"a/{number}", {}, None)) for number in range(5)]
    await asyncio.sleep(0)
    for write in writes:
        write.cancel()
    await asyncio.wait(writes)
    assert all(write.cancelled() for write in writes)
    assert len(await store.under("a/")) == 5
    await store.close()


def test_the_lock_of_the_file_is_the_kernels(tmp_path: Path) -> None:
    with (tmp_path / "documents.json.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreHeldError, match="just beginning"):
            asyncio.run(FileStore.open(tmp_path / "documents.json"))


# --- Redis


async def test_redis_away_is_an_error_in_time_and_over_by_itself(redis_server: PrivateRedis) -> None:
    url = redis_server.url + "?namespace=away"
    async with open_store(url, timeout_s=0.3) as store, open_store(url, timeout_s=20) as patient:
        version = await patient.put("a", {}, None)
        redis_server.freeze()
        try:
            for call in (store.get("a"), store.put("a", {}, version), store.under(""), store.delete("a", version)):
                with pytest.raises(StoreUnavailableError):
                    await call
        finally:
            redis_server.thaw()
        await asyncio.wait_for(_back(store), 60)


@pytest.mark.parametrize(
    ("setting", "word"), [("maxmemory", "OOM command not"), ("min-replicas-to-write", "NOREPLICAS Not enough")]
)
async def test_a_redis_that_takes_no_writes_for_now_is_unavailable(
    redis_server: PrivateRedis, setting: str, word: str
) -> None:
    async with open_store(f"{redis_server.url}?namespace={setting}", timeout_s=10) as store:
        version = await store.put("a", {}, None)
        redis_server.client.config_set(setting, "1")
        try:
            with pytest.raises(StoreUnavailableError, match=word):
                await store.put("a", {}, version)
        finally:
            redis_server.client.config_set(setting, "0")
        await store.put("a", {}, version)


async def test_a_redis_that_is_no_master_for_now_is_unavailable(redis_server: PrivateRedis) -> None:
    async with open_store(f"{redis_server.url}?namespace=replica", timeout_s=10) as store:
        version = await store.put("a", {}, None)
        redis_server.client.replicaof("127.0.0.1", 1)
        try:
            with pytest.raises(StoreUnavailableError, match="READONLY You can't write"):
                await store.put("a", {}, version)
        finally:
            redis_server.client.replicaof("NO", "ONE")
        await store.put("a", {}, version)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ClusterDownError("Hash slot not served", status_code="CLUSTERDOWN"), StoreUnavailableError),
        (TryAgainError("Multiple keys request", status_code="TRYAGAIN"), StoreUnavailableError),
        (ResponseError("NOREPLICAS Not enough good replicas to write."), StoreUnavailableError),
        (ResponseError("wrong number of arguments", status_code="ERR"), StoreFailedError),
        (NoPermissionError("this user has no permissions", status_code="NOPERM"), StoreFailedError),
    ],
)
async def test_an_error_of_redis_says_what_redis_said_and_whether_it_passes(
    redis_server: PrivateRedis, monkeypatch: pytest.MonkeyPatch, error: RedisError, kind: type[CoordinationError]
) -> None:
    async def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(Redis, "hget", refuse)
    async with open_store(redis_server.url, timeout_s=10) as store:
        with pytest.raises(kind, match=f"{error}") as caught:
            await store.get("a")
    assert type(caught.value) is kind


async def test_versions_go_on_rising_when_redis_has_lost_everything(redis_server: PrivateRedis) -> None:
    async with open_store(redis_server.url + "?namespace=lost", timeout_s=10) as store:
        before = await store.put("a", {}, None)
        redis_server.client.flushall()
        with pytest.raises(ConflictError):
            await store.put("a", {}, before)
        assert await store.put("a", {}, None) > before


async def test_versions_rise_when_redis_has_its_clock_set_back(redis_server: PrivateRedis) -> None:
    async with open_store(redis_server.url + "?namespace=clock", timeout_s=10) as store:
        ahead = 4_000_000_000_000_000
        redis_server.client.set("clock:{coordination}:version", ahead)
        first = await store.put("a", {}, None)
        second = await store.put("a", {}, first)
        assert (first, second) == (Version(0, ahead + 1), Version(0, ahead + 2))


async def test_namespaces_are_apart(redis_server: PrivateRedis) -> None:
    url = redis_server.url
    async with open_store(f"{url}?namespace=one", timeout_s=10) as one, open_store(url, timeout_s=10) as other:
        await one.put("a", {}, None)
        assert await other.get("a") is None and list(await one.under("")) == ["a"]


async def _back(store: DocumentStore) -> None:
    while True:
        try:
            await store.get("a")
            return
        except StoreUnavailableError:
            continue


@pytest.mark.parametrize("url", ["ftp://somewhere", "file://state/documents.json"])
async def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="no document store"):
        async with open_store(url):
            pass


@pytest.mark.parametrize("scheme", ["redis", "opensearch"])
async def test_a_url_that_cannot_be_read_is_refused_without_its_password(scheme: str) -> None:
    with pytest.raises(ValueError, match=f"the URL of '{scheme}' has no host and port that can be read") as refused:
        async with open_store(f"{scheme}://me:hunter/2@host"):
            pass
    assert "hunter" not in str(refused.value)


async def test_what_a_redis_url_says_of_tls_is_kept_and_what_would_undo_promises_refused() -> None:
    store = RedisStore.open("rediss://host:1/2?namespace=one&ssl_ca_certs=/ca.pem&ssl_check_hostname=no", 2.0)
    options = store._pool.connection_kwargs
    assert (options["ssl_ca_certs"], options["ssl_check_hostname"], options["db"]) == ("/ca.pem", False, 2)
    assert store._bodies == "one:{coordination}:documents"
    await store.close()
    for url, option in (("rediss://h?retry_on_timeout=yes", "retry_on_timeout"), ("redis://h?ssl_ca_certs=x", "ssl_")):
        with pytest.raises(ValueError, match=f"{option}.* cannot be given"):
            RedisStore.open(url, 2.0)


# --- search servers, as far as a twin of its answers can show


async def test_no_write_is_repeated_when_a_kept_connection_breaks() -> None:
    """Aiohttp would repeat PUT and DELETE by itself; the second one would meet what the first one did."""
    paths: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        if request.path.endswith("_mapping"):
            return web.json_response({"tasks": {"mappings": {"_meta": {"sluice_format": FORMAT}}}})
        if request.method == "GET":
            return web.json_response({"found": False}, status=404)
        paths.append(f"{request.method} {request.path}")
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    server = web.AppRunner(_app(answer))
    await server.setup()
    await web.TCPSite(server, "127.0.0.1", 0).start()
    try:
        async with open_store(f"opensearch://127.0.0.1:{server.addresses[0][1]}/tasks", timeout_s=10) as store:
            for write in (store.put("a", {}, None), store.delete("a", Version(1, 2))):
                # Each on a connection that has been used and kept open.
                assert await store.get("a") is None
                with pytest.raises(StoreUnavailableError):
                    await write
    finally:
        await server.cleanup()
    assert paths == ["POST /tasks/_doc/a", "POST /tasks/_bulk"]


async def test_an_index_that_was_deleted_is_a_failure_of_the_store() -> None:
    is_there = True

    async def answer(request: web.Request) -> web.Response:
        if is_there:
            return web.json_response({"tasks": {"mappings": {"_meta": {"sluice_format": FORMAT}}}})
        return web.json_response({"error": {"type": "index_not_found_exception"}, "status": 404}, status=404)

    server = web.AppRunner(_app(answer))
    await server.setup()
    await web.TCPSite(server, "127.0.0.1", 0).start()
    try:
        async with open_store(f"elasticsearch://127.0.0.1:{server.addresses[0][1]}/tasks", timeout_s=10) as store:
            is_there = False
            for call in (store.get("a"), store.put("a", {}, None), store.under("")):
                with pytest.raises(StoreFailedError, match=r"\[the search server: 404 index_not_found_exception\]"):
                    await call
    finally:
        await server.cleanup()


@pytest.mark.parametrize("scheme", ["opensearch+https", "elasticsearch+https"])
async def test_a_search_server_is_reached_with_tls_as_a_user(tmp_path: Path, scheme: str) -> None:
    authority, seen = Authority(tmp_path), set[str | None]()
    pair = authority.issue("search")
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pair.certificate, pair.key)

    async def answer(request: web.Request) -> web.Response:
        seen.add(request.headers.get("Authorization"))
        return web.json_response({"tasks": {"mappings": {"_meta": {"sluice_format": FORMAT}}}})

    server = web.AppRunner(_app(answer))
    await server.setup()
    await web.TCPSite(server, "127.0.0.1", 0, ssl_context=serving).start()
    url = f"{scheme}://feeder:p%40ss@localhost:{server.addresses[0][1]}/tasks"
    try:
        with pytest.raises(StoreUnavailableError, match="certificate"):
            async with open_store(url, timeout_s=10):
                pass
        async with open_store(f"{url}?ssl_ca_certs={authority.file}", timeout_s=10):
            assert seen == {aiohttp.encode_basic_auth("feeder", "p@ss")}
    finally:
        await server.cleanup()


@pytest.mark.parametrize("url", ["opensearch://h/i?ssl_ca_certs=ca.pem", "opensearch+https://h/i?verify=no"])
async def test_what_an_opensearch_url_cannot_say_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="cannot be given in a URL of opensearch"):
        async with open_store(url):
            pass


def _app(answer: Callable[[web.Request], Awaitable[web.Response]]) -> web.Application:
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", answer)
    return app
