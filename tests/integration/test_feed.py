"""Feeds of events and the partitions of requests, with real gateways and a real Kafka."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import dropwhile
from typing import Any
from uuid import uuid4

import httpx
import pytest
from support.instances import have_instances
from support.pace import Pace

from harness import System, eventually

pytestmark = pytest.mark.integration

S = "/sluice/v1"
SETTLED_S = 120.0
COMES_S = 60.0
PAGES = 50
STOPS_S = 2.5
"""A second for the feeds, and what the process takes to leave the cluster and to end on a machine that is busy."""


@pytest.fixture
def doubled(disturbed: System) -> System:
    """A system with two instances of each service."""
    return have_instances(disturbed, 2, SETTLED_S)


class Page:
    """A page that follows everything at one gateway; `position` is that of the last event."""

    def __init__(self, url: str, since: str = "") -> None:
        host, port = url.removeprefix("http://").split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=COMES_S)
        self._file = self._socket.makefile("rb")
        query = f"?since={since}" if since else ""
        self._socket.sendall(f"GET {S}/events{query} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert self._file.readline().startswith(b"HTTP/1.1 200")
        self.position = since
        assert self.next()[0] == "hello"

    def next(self) -> tuple[str, Any]:
        """The name and the data of the next event."""
        name = ""
        while line := self._file.readline():
            field, _, value = line.decode().strip().partition(": ")
            if field == "event":
                name = value
            elif field == "data":
                data = json.loads(value)
                self.position = data.get("position", self.position)
                return name, data
        return "", None

    def until(self, *aggregates: str) -> None:
        """Read until these have changed; everything is known, so nothing is fetched anew."""
        missing = set(aggregates)
        while missing:
            name, data = self.next()
            assert name in ("changed", "beat"), (name, data)
            missing -= {item["aggregate"] for item in data.get("items", ())}

    def rest(self) -> list[str]:
        """The names of all events until the connection ends."""
        names = []
        while (event := self.next())[0]:
            names.append(event[0])
        return names

    def close(self) -> None:
        self._file.close()
        self._socket.close()


@contextmanager
def pages(count: int, url: str) -> Iterator[list[Page]]:
    with ExitStack() as stack:
        opened = [Page(url) for _ in range(count)]
        for page in opened:
            stack.callback(page.close)
        yield opened


def put_scope(url: str) -> str:
    scope = f"feed-{uuid4().hex}"
    assert httpx.put(f"{url}{S}/scopes/{scope}", timeout=COMES_S, trust_env=False).status_code == 201
    return scope


def test_a_page_goes_on_at_another_gateway_and_fifty_pages_keep_none_from_stopping(doubled: System) -> None:
    first, second = doubled.rest_urls
    (stopped, *_) = [name for name in doubled.names if name.startswith("api-gateway")]
    with pages(1, second), pages(PAGES, first) as opened:
        page = opened[0]
        page.until(f"scope:{put_scope(second)}")
        before = doubled.log(stopped).stat().st_size
        # A gateway that stops waits for Kafka, and so does a list: behind its barrier.
        scopes = f"{second}{S}/scopes?limit=1"
        with Pace(lambda: httpx.get(scopes, timeout=COMES_S, trust_env=False).raise_for_status()) as pace:
            began = time.monotonic()
            doubled.stop(stopped)
            took_s = time.monotonic() - began
        missed = [put_scope(second), put_scope(second)]
        assert all(one.rest()[-1] == "bye" for one in opened)
        resumed = Page(second, page.position)
        resumed.until(*(f"scope:{scope}" for scope in missed))
        resumed.close()
    assert took_s < STOPS_S + 2 * pace.longest_s
    lines = [json.loads(line) for line in doubled.log(stopped).read_bytes()[before:].splitlines()]
    ending = list(dropwhile(lambda line: line["message"] != "stopping", lines))
    assert ending[-1]["message"] == "stopped"
    assert not [line for line in ending if line["level"] in ("error", "critical")]


def test_partitions_name_their_owners_and_what_waits(doubled: System) -> None:
    url = doubled.rest_urls[-1]

    def found() -> list[dict[str, Any]]:
        answer = httpx.get(f"{url}{S}/partitions", timeout=COMES_S, trust_env=False)
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items

    def waiting() -> list[dict[str, Any]]:
        """Of stream-workflows'. Heartbeats of all services come and are acknowledged meanwhile."""
        return [item for item in found() if item["topic"] == "sluice.requests.streams" and item["lag"]]

    def nothing_waits() -> bool:
        assert waiting() == []
        return True

    def owned_by_members() -> bool:
        members = httpx.get(f"{url}{S}/members", timeout=COMES_S, trust_env=False).json()["items"]
        assert {item["owner"] for item in found()} <= {member["instance"] for member in members}
        return True

    eventually(owned_by_members, COMES_S, "each partition has an owner")
    eventually(nothing_waits, COMES_S, "what was done before is committed")
    names = [name for name in doubled.names if name.startswith("stream-workflows")]
    for name in names:
        doubled.freeze(name)
    try:
        with pytest.raises(httpx.ReadTimeout):
            httpx.put(f"{url}{S}/scopes/{uuid4().hex}", timeout=httpx.Timeout(COMES_S, read=3), trust_env=False)

        def waits() -> bool:
            (one,) = waiting()
            return bool(1_000 < one["oldestOpenMs"] < COMES_S * 1_000)

        eventually(waits, COMES_S, "the request waits, and since when is known")
    finally:
        for name in names:
            doubled.thaw(name)
    eventually(nothing_waits, COMES_S, "nothing waits")
