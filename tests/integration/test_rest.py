"""The REST interfaces on the whole system: what only real processes show."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from confluent_kafka import Producer

from harness import System, eventually
from sluice.domain.scope.commands import CreateScope
from sluice.kafka.headers import Headers
from sluice.kafka.requests import Request, encode_request
from sluice.kafka.topics import DEAD_LETTERS, REQUESTS_STREAMS

pytestmark = pytest.mark.integration

S = "/sluice/v1"
COMES_S = 60.0


@pytest.fixture
def client(system: System) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=system.rest_url, timeout=60, trust_env=False) as client:
        yield client


def letter(client: httpx.Client, value: str, **query: Any) -> Any:
    """The dead letter with this value, None if it is not listed."""
    answer = client.get(f"{S}/dead-letters", params=query)
    assert answer.status_code == 200, answer.text
    return next((item for item in answer.json()["items"] if item["value"] == value), None)


def test_all_members_give_signs_of_life(client: httpx.Client) -> None:
    def all_seen() -> bool:
        members = client.get(f"{S}/members").json()["items"]
        services = {member["service"] for member in members if "lastSeen" in member}
        return services >= {"api-gateway", "stream-workflows", "cluster-manager", "txn-manager"}

    eventually(all_seen, COMES_S, "every service is shown")


def test_a_member_that_was_restarted_is_there_since_then(system: System, client: httpx.Client) -> None:
    def since() -> int:
        members = client.get(f"{S}/members").json()["items"]
        return max(int(member["since"]) for member in members if member["service"] == "stream-workflows")

    before = since()
    system.restart("stream-workflows-0")
    eventually(lambda: since() > before, COMES_S, "the member is there since its restart")


def test_a_replayed_request_is_carried_out(system: System, client: httpx.Client) -> None:
    scope = f"rest-{uuid4().hex}"
    request = encode_request(Request(id=uuid4().hex, at=1, by="test", command=CreateScope(scope=scope)))
    # As a service keeps it that could not handle it.
    producer = Producer({"bootstrap.servers": system.kafka_bootstrap, "partitioner": "murmur2_random"})
    headers: Headers = [
        ("sluice_reason", "why"),
        ("sluice_service", "x"),
        ("sluice_topic", REQUESTS_STREAMS.name),
    ]
    producer.produce(DEAD_LETTERS.name, request, scope, headers=headers)
    assert producer.flush(COMES_S) == 0
    found = eventually(lambda: letter(client, request.decode()), COMES_S, "the dead letter is listed")
    answer = client.post(f"{S}/dead-letters/{found['partition']}/{found['offset']}/replay")
    assert answer.json()["settled"] == "replayed"
    assert answer.headers["sluice-request"] == answer.json()["request"]
    eventually(lambda: client.get(f"{S}/scopes/{scope}").status_code == 200, COMES_S, "the scope is there")
    assert letter(client, request.decode()) is None


def test_both_interfaces_and_the_description_are_on_the_port_of_health(client: httpx.Client) -> None:
    for path in ("/livez", "/metrics", "/ping", "/prometheus", "/v1/scopes", f"{S}/scopes", "/openapi.json"):
        assert client.get(path).status_code == 200, path
    eventually(lambda: client.get("/readyz").status_code == 200, COMES_S, "the gateway is ready")
    eventually(lambda: client.get("/v1/health/readiness").json() is True, COMES_S, "the whole system is ready")
    assert client.get("/v1/health/details/txn-manager").json()
