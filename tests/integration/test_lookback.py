"""The past over REST on the whole system: the helper reads Kafka, comes back when it dies, ends with its gateway."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from typer.testing import CliRunner

from harness import System, eventually
from sluice_cli.main import app

pytestmark = pytest.mark.integration

S = "/sluice/v1"
COMES_S = 60.0
GATEWAY = "api-gateway-0"


@pytest.fixture
def client(system: System) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{system.rest_url}{S}", timeout=60, trust_env=False) as client:
        yield client


def get(client: httpx.Client, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def command(system: System, *arguments: object) -> Any:
    environment = {"SLUICE_API": system.rest_url, "SLUICE_KAFKA_BOOTSTRAP": system.kafka_bootstrap}
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"], env=environment)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def helpers(gateway: int) -> list[int]:
    """The helper processes of a gateway."""
    children = Path(f"/proc/{gateway}/task/{gateway}/children").read_text().split()
    return [int(pid) for pid in children if "sluice.lookback.helper" in Path(f"/proc/{pid}/cmdline").read_text()]


def is_there(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_the_past_over_rest_is_that_of_the_command_line(system: System, client: httpx.Client) -> None:
    scope = f"past-{uuid4().hex[:8]}"
    path = f"/scopes/{scope}/streams/orders"
    assert client.put(f"/scopes/{scope}").status_code == 201
    assert client.put(path, json={"tags": ["old"]}).status_code == 201
    # A search that takes long answers with what it has, and goes on from there the next time.
    created = eventually(
        lambda: get(client, f"{path}/history", types="StreamCreated")["items"], COMES_S, "its creation is found"
    )[0]["at"]
    updated = client.put(path, json={"tags": ["new"]})
    assert updated.status_code == 200

    then = eventually(lambda: get(client, path, at=created), COMES_S, "all before that is folded")
    assert then["config"]["tags"] == ["old"] and get(client, path)["config"]["tags"] == ["new"]
    past = command(system, "stream", "show", f"{scope}/orders", "--at", created)
    assert then["asOf"] == {key: past["record"][key] for key in ("partition", "offset")}
    assert {k: v for k, v in past.items() if k not in ("record", "segments")} == {
        k: v for k, v in then.items() if k not in ("asOf", "segments")
    }

    request = updated.headers["Sluice-Request"]
    traced: Any = eventually(
        lambda: (f := get(client, f"/requests/{request}"))["complete"] and f, COMES_S, "all topics are searched"
    )
    assert traced.pop("complete") and traced.pop("searchedTo") <= traced["began"]
    assert traced == command(system, "trace", request)

    events = command(system, "journal", "list", "--key", f"{scope}/orders")
    assert events[0]["type"] == "StreamUpdated"
    holdings: Any = eventually(
        lambda: (f := get(client, "/containers/history"))["complete"] and f["items"], COMES_S, "all is searched"
    )
    (held,) = (one["store"] for one in holdings if one["container"] == 0 and "to" not in one)
    assert held == get(client, "/containers")["items"][0]["store"]


def test_a_helper_that_is_killed_comes_back_and_ends_with_its_gateway(system: System, client: httpx.Client) -> None:
    assert get(client, "/journal", limit=1)["items"]
    gateway = system.pid(GATEWAY)
    (first,) = helpers(gateway)
    assert os.getpriority(os.PRIO_PROCESS, first) == 10
    os.kill(first, signal.SIGKILL)
    eventually(lambda: not is_there(first), COMES_S, "the helper is gone")
    assert get(client, "/journal", limit=1)["items"]
    (second,) = helpers(gateway)
    system.kill(GATEWAY)
    eventually(lambda: not is_there(second), COMES_S, "the helper ended with its gateway")
    system.start(GATEWAY)
    assert get(client, "/journal", limit=1)["items"]
    (third,) = helpers(system.pid(GATEWAY))
    system.restart(GATEWAY)
    assert not is_there(third)
