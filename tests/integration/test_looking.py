"""What operators look at, on the whole system: rates and lengths as segment stores say, readers as they write it."""

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from support import group_state as written
from support.controller import controller, unique
from support.segments import append
from support.writer import WriterProcess

from harness import System, eventually

pytestmark = pytest.mark.integration

S = "/sluice/v1"
COMES_S = 60.0


@pytest.fixture
def client(system: System) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{system.rest_url}{S}", timeout=60, trust_env=False) as client:
        yield client


def get(client: httpx.Client, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_stream_that_is_written_to_read_and_scaled_looks_as_it_is(system: System, client: httpx.Client) -> None:
    scope = unique("looking")
    one = f"/scopes/{scope}/streams/st"
    assert client.put(f"/scopes/{scope}").status_code == 201
    assert client.put(one, json={}).status_code == 201

    def rates() -> Any:
        return get(client, f"{one}/rates")["segments"][0]

    eventually(lambda: rates().get("length") == 0, COMES_S, "it is measured, and empty")
    seen: list[Any] = []
    with WriterProcess(system.grpc_address, scope, "st", "w") as writer:
        began = time.monotonic()

        def is_busy() -> bool:
            seen.append(rates())
            return bool(seen[-1].get("bytesPerS")) and bool(seen[-1].get("eventsPerS"))

        eventually(is_busy, COMES_S, "bytes and events a second are seen")
        writer.stop()
        count = writer.finish(COMES_S)
        # Rates are means of two seconds or more, so none is above what was written in all.
        assert seen[-1]["eventsPerS"] <= count
        assert time.monotonic() - began < COMES_S
    length = eventually(lambda: (f := rates()).get("bytesPerS") == 0.0 and f["length"], COMES_S, "it is quiet")

    # A group that has read nothing has all of it before it.
    config: Any = {"config": {"streams": {f"{scope}/st": {}}}}
    assert client.put(f"/scopes/{scope}/readergroups/rg", json=config).status_code == 201
    entry = written.initial(written.config([f"{scope}/st"], str(uuid4()), 0), [f"{scope}/st/0.#epoch.0"])
    with controller(system.grpc_address) as gateway:
        append(gateway, (scope, "_RGrg"), 0, entry)
    readers: Any = eventually(
        lambda: (f := get(client, f"/scopes/{scope}/readergroups/rg/readers"))["complete"] and f, COMES_S, "all answer"
    )
    assert readers["lag"]["bytes"] == length
    assert [held["offset"] for held in readers["unassigned"]] == [0]

    cut = {"cut": {"0": length}}
    assert client.post(f"{one}/truncate", json=cut, params={"dryRun": True}).json()["effects"]["bytesDropped"] == length
    assert client.post(f"{one}/scale", json={"sealed": [0], "ranges": [[0.0, 0.5], [0.5, 1.0]]}).status_code == 202
    eventually(lambda: get(client, f"{one}/scales/0")["done"], COMES_S, "the scale has ended")
    columns = get(client, f"{one}/topology")["segments"]
    assert (columns["bornEpoch"], columns["endEpoch"], columns["bytes"]) == ([0, 1, 1], [1, -1, -1], [length, -1, -1])
