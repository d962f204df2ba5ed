"""Endpoints that are polled: what is requested, what is written, where it goes on."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace

import httpx
import pytest
from unit.ingest.world import World

from distributed_ingest import http, records
from distributed_ingest.http import Http
from sluice_cli.errors import UsageError

Answer = Callable[[httpx.Request], httpx.Response]
URL = "http://here/data"


class Endpoint:
    """Answers in turn, the last answer for ever; `requests` has what came."""

    def __init__(self, *answers: httpx.Response | Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer(request) if callable(answer) else answer


def feed(
    world: World, endpoint: Endpoint, *urls: str, once: bool = False, cursor: str = "", every_s: float = 0.01
) -> Http:
    return Http(
        world.scene(once=once),
        urls or (URL,),
        every_s=every_s,
        cursor_field=cursor,
        cursor_start="0",
        transport=httpx.MockTransport(endpoint),
    )


def body(text: str, **headers: str) -> Answer:
    """An answer that can be given many times."""
    return lambda _request: httpx.Response(200, text=text, headers=headers)


@pytest.fixture
def world() -> World:
    return World(kind="http", key="source")


async def test_what_has_not_changed_is_not_written_again(world: World) -> None:
    endpoint = Endpoint(body("a\nb\n"), body("a\nb\n"), body("a\nb\nc\n"))
    polling = feed(world, endpoint)
    async with world.node(polling):
        await world.until(lambda: len(endpoint.requests) >= 5, "it is polled repeatedly")
    assert world.sink.texts == ["a", "b", "a", "b", "c"]
    assert {event.key for event in world.sink.events} == {URL}


async def test_a_url_that_is_given_twice_is_polled_once(world: World) -> None:
    endpoint = Endpoint(body("a\n"))
    await world.run_to_completion(feed(world, endpoint, URL, URL, once=True))
    assert world.sink.texts == ["a"]


async def test_it_asks_conditionally_also_after_a_restart(world: World) -> None:
    modified = "Sat, 21 Nov 2026 10:00:00 GMT"
    headers = {"ETag": '"v1"', "Last-Modified": modified, "Date": "Sat, 21 Nov 2026 10:00:01 GMT"}
    endpoint = Endpoint(body("a\n", **headers), lambda _request: httpx.Response(304))
    await world.run_to_completion(feed(world, endpoint, once=True))
    await world.run_to_completion(feed(world, endpoint, once=True))
    assert world.sink.texts == ["a"]
    assert "If-None-Match" not in endpoint.requests[0].headers
    last = endpoint.requests[-1].headers
    assert (last["If-None-Match"], last["If-Modified-Since"]) == ('"v1"', modified)


async def test_a_change_within_the_second_of_the_last_one_is_read(world: World) -> None:
    """The server's file changes twice in a second, and it names versions by the second, as nginx does."""
    second, version = "Sat, 21 Nov 2026 10:00:00 GMT", '"at-10:00:00"'
    texts, date = ["a\n", "b\n"], [second]

    def answer(request: httpx.Request) -> httpx.Response:
        headers = {"Last-Modified": second, "ETag": version, "Date": date[-1]}
        if request.headers.get("If-None-Match") == version or request.headers.get("If-Modified-Since") == second:
            return httpx.Response(304, headers=headers)
        return httpx.Response(200, text=texts.pop(0) if len(texts) > 1 else texts[0], headers=headers)

    endpoint = Endpoint(answer)
    async with world.node(feed(world, endpoint)):
        await world.until(lambda: world.sink.texts == ["a", "b"], "the second version is written")
        date.append("Sat, 21 Nov 2026 10:00:10 GMT")
        await world.until(lambda: "If-None-Match" in endpoint.requests[-1].headers, "it asks conditionally again")
    assert world.sink.texts == ["a", "b"]


async def test_validators_that_no_request_can_carry_are_not_sent(world: World) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=f"{request.url.path}\n", headers=[(b"ETag", '"vé"'.encode())])

    endpoint = Endpoint(answer)
    for _ in range(2):
        await world.run_to_completion(feed(world, endpoint, URL, "http://here/other", once=True))
    assert sorted(world.sink.texts) == ["/data", "/other"] and not world.tally.problems
    assert len(endpoint.requests) >= 4 and not any("If-None-Match" in each.headers for each in endpoint.requests)


async def test_a_url_that_a_cursor_makes_unusable_stops_no_other(world: World) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text='{"id": "%s"}\n' % ("x" * 70_000 if request.url.path == "/long" else "1"))

    urls = ("http://here/long?after={cursor}", f"{URL}?after={{cursor}}")
    endpoint = Endpoint(answer)
    polling = feed(world, endpoint, *urls, cursor="id")
    async with world.node(polling):
        await world.until(lambda: bool(world.tally.problems), "it is reported")
        seen = len(endpoint.requests)
        await world.until(lambda: len(endpoint.requests) > seen + 3, "the other is polled on")
    assert all("here/long" in problem and "too long" in problem for problem in world.tally.problems)


async def test_a_cursor_follows_pages_without_a_pause_and_goes_on_after_a_restart(world: World) -> None:
    requests: list[str] = []
    slow = asyncio.Event()

    async def page(request: httpx.Request) -> httpx.Response:
        after = int(request.url.params["after"])
        requests.append(str(after))
        if after == 3:
            await slow.wait()
        return httpx.Response(200, text="".join(f'{{"id": {n}}}\n' for n in range(after + 1, after + 4) if n < 9))

    for _ in range(2):
        urls, transport = [f"{URL}?after={{cursor}}"], httpx.MockTransport(page)
        scene = world.scene(once=True)
        polling = Http(scene, urls, every_s=60, cursor_field="id", cursor_start="0", transport=transport)
        async with world.node(polling):
            if not slow.is_set():
                await world.until(lambda: requests == ["0", "3"], "the first page is through")
                assert not (await world.reach(polling)).finished
                slow.set()
            await world.until_finished(polling)
        assert len(world.sink.events) == 8
    assert requests == ["0", "3", "6", "8", "8"]


async def test_a_record_too_large_does_not_hold_up_what_the_cursor_finds_behind_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (http, records):
        monkeypatch.setattr(module, "MAX_EVENT_BYTES", 20)
    world.records = "items"
    pages = {"0": '[{"id": 1, "text": "too large for an event"}]', "1": '[{"id": 2}]', "2": "[]"}
    endpoint = Endpoint(lambda request: httpx.Response(200, text=pages[request.url.params["after"]]))
    await world.run_to_completion(feed(world, endpoint, f"{URL}?after={{cursor}}", once=True, cursor="id"))
    assert world.sink.texts == ['{"id": 2}'] and world.tally.total.skipped == 1


async def test_a_body_that_stays_is_written_once_and_a_wrong_field_reported(world: World) -> None:
    endpoint = Endpoint(body('{"id": 1}\n'))
    polling = feed(world, endpoint, f"{URL}?after={{cursor}}", cursor="identity")
    async with world.node(polling):
        await world.until(lambda: len(endpoint.requests) >= 4, "it is polled repeatedly")
    assert world.sink.texts == ['{"id": 1}']
    assert "no record has the field identity that --cursor names" in world.tally.problems[0]


async def test_an_answer_that_does_not_end_times_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "POLL_S", 0.05)

    class Drip(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                await asyncio.sleep(0.01)
                yield b"x"

    endpoint = Endpoint(lambda _request: httpx.Response(200, stream=Drip()), body("a\n"))
    await world.run_to_completion(feed(world, endpoint, once=True))
    assert world.sink.texts == ["a"] and list(world.tally.problems) == [f"{URL}: the answer has not ended for 0.05 s"]


@pytest.mark.parametrize(
    ("every_s", "retry_after", "pause_s"),
    [
        (3600.0, "", 3600.0),
        (10.0, "900", 900.0),
        (10.0, "9999999", 86400.0),
        (10.0, "soon", 10.0),
        (10.0, "Mon, 01 Jan 2001 00:00:00 GMT", 10.0),
        (10.0, "Fri, 01 Jan 2100 00:00:00 GMT", 86400.0),
    ],
)
async def test_after_trouble_it_waits_as_long_as_it_is_to(
    world: World, monkeypatch: pytest.MonkeyPatch, every_s: float, retry_after: str, pause_s: float
) -> None:
    paused: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        paused.append(seconds)
        await sleep(0 if len(paused) == 1 else 60)

    monkeypatch.setattr(http, "asyncio", SimpleNamespace(**{**vars(asyncio), "sleep": note}))
    endpoint = Endpoint(lambda _request: httpx.Response(503, headers={"Retry-After": retry_after}), body("a\n"))
    polling = feed(world, endpoint, every_s=every_s)
    async with world.node(polling):
        await world.until(lambda: len(paused) == 2, "it has paused twice")
    assert paused == [pause_s, every_s]


async def test_failures_are_reported_and_waited_out(world: World) -> None:
    def broken(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("no route", request=request)

    endpoint = Endpoint(broken, lambda _request: httpx.Response(503), body("a\n"))
    await world.run_to_completion(feed(world, endpoint, once=True))
    assert world.sink.texts == ["a"]
    assert list(world.tally.problems) == [f"{URL}: no route", f"{URL}: answered 503 Service Unavailable"]


async def test_once_gives_up_a_url_without_an_answer_and_reads_the_others(world: World) -> None:
    dead = "http://there/data"
    away = True

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.host == "there" and away:
            raise httpx.ConnectError("no route", request=request)
        return httpx.Response(200, text=f"{request.url.host}\n")

    for _ in range(2):
        endpoint = Endpoint(answer)
        polling = feed(world, endpoint, URL, dead, once=True)
        async with world.node(polling):
            await world.until_finished(polling)
            (missed,) = (await world.reach(polling)).missed
            assert re.fullmatch(f"{dead}: no usable answer \\d+ times in a row, the last time: no route", missed)
        assert sum(request.url.host == "there" for request in endpoint.requests) >= 6, "each run tries anew"
    away = False
    await world.run_to_completion(polling := feed(world, Endpoint(answer), URL, dead, once=True))
    assert (await world.reach(polling)).missed == () and world.sink.texts == ["here", "there"]


async def test_urls_that_hang_delay_no_other_however_many_they_are(world: World) -> None:
    hanging = answered = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal hanging, answered
        request = await reader.readuntil(b"\r\n\r\n")
        if b" /good " in request:
            writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            answered += 1
        else:
            hanging += 1
            await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    here = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    urls = [f"{here}/good", *(f"{here}/{number}" for number in range(100))]
    polling = Http(world.scene(), urls, every_s=0.01, cursor_field="", cursor_start="")
    async with world.node(polling):
        await world.until(lambda: hanging == 100, "all of the others hang")
        before = answered
        await world.until(lambda: answered > before + 1, "the good one is polled on")
    server.close()


async def test_an_endpoint_is_reached_by_the_proxy_of_the_environment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        found = request.split()[1]
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(found), found))
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    polling = Http(world.scene(once=True), ["http://feed.invalid/x"], every_s=0.01, cursor_field="", cursor_start="")
    await world.run_to_completion(polling)
    assert world.sink.texts == ["http://feed.invalid/x"]
    server.close()


async def test_items_of_an_array(world: World) -> None:
    world.records = "items"
    endpoint = Endpoint(body('{"not": "an array"}'), body('[{"a": 1}, 2]'))
    await world.run_to_completion(feed(world, endpoint, once=True))
    assert world.sink.texts == ['{"a": 1}', "2"]
    assert "--records says how it is cut" in world.tally.problems[0]


async def test_no_content_is_nothing_new(world: World) -> None:
    world.records = "items"
    endpoint = Endpoint(httpx.Response(204), body("[1]"), httpx.Response(204))
    polling = feed(world, endpoint)
    async with world.node(polling):
        await world.until(lambda: len(endpoint.requests) > 4, "it is polled repeatedly")
    assert world.sink.texts == ["1"] and not world.tally.problems


async def test_urls_are_dealt_to_workers(world: World) -> None:
    def path(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text=f"{request.url.path}\n")

    urls = [f"http://here/{number}" for number in range(5)]
    one, two = (feed(world, Endpoint(path), *urls, once=True) for _ in range(2))
    async with world.node(one), world.node(two):
        await world.until_finished(one)
        await world.until_finished(two)
    assert sorted(world.sink.texts) == [f"/{number}" for number in range(5)]


async def test_a_body_too_large_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_BODY_BYTES", 10)
    polling = feed(world, Endpoint(body("x" * 11)))
    async with world.node(polling):
        await world.until(lambda: bool(world.tally.problems), "it is reported")
    assert "more than 10 bytes" in world.tally.problems[0] and world.sink.events == []


@pytest.mark.parametrize(
    ("url", "cursor"), [("ftp://here/", ""), ("here", ""), ("http://here/{cursor}", ""), ("http://here/", "id")]
)
async def test_what_cannot_be_polled(world: World, url: str, cursor: str) -> None:
    with pytest.raises(UsageError, match="cannot be polled"):
        await feed(world, Endpoint(body("")), url, cursor=cursor).open()
