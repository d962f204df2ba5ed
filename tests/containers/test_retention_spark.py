"""retention-spark alone: reports on loads and sizes become requests, each under an id that follows from it."""

import time
from collections.abc import Iterator

import msgspec
import pytest

from containers.container_contract import ContainerContract, EndContract
from containers.lives import garbage, newer, relocated
from containers.neighbours import Neighbours
from containers.service import ServiceContainer
from containers.surroundings import Surroundings
from harness import eventually
from sluice.catalog import examples
from sluice.catalog.examples import Example
from sluice.domain.stream import commands as c
from sluice.kafka.requests import Request, decode_request
from sluice.kafka.topics import REQUESTS_STREAMS

STARTS_S = 240.0
DECIDES_S = 100.0


@pytest.fixture(scope="module")
def service(surroundings: Surroundings, neighbours: Neighbours) -> Iterator[ServiceContainer]:
    with surroundings.running(
        "retention-spark",
        memory="1536m",
        scratch="512m",
        spark_checkpoints="/tmp/checkpoints",
        spark_history="/tmp/history",
        spark_local="/tmp/spark",
        scale_trigger_s="0.5",
        retention_trigger_s="0.5",
    ) as service:
        service.wait_ready(STARTS_S)
        yield service


def reports_on(scope: str) -> list[Example]:
    """The reports of the examples about a stream that is still there, sent just now.

    Of load that of the first epoch: with one of the next, the scale that it asks for is done.
    """
    wanted = (b'"epoch":0,', b'"sample":{')
    reports = (relocated(e, scope) for e in examples.reports() if any(part in e.value for part in wanted))
    return [_now(e) for e in reports]


def requests_about(neighbours: Neighbours, scope: str) -> dict[str, Request]:
    """Its requests about a scope, by id; one id has one command."""
    found: dict[str, Request] = {}
    for message in neighbours.others(REQUESTS_STREAMS.name):
        if (message.key() or b"").decode().startswith(f"{scope}/"):
            request = decode_request(message.value() or b"")
            assert found.setdefault(request.id, request).command == request.command
    return found


def kinds(neighbours: Neighbours, scope: str) -> list[str]:
    return sorted(type(r.command).__name__ for r in requests_about(neighbours, scope).values())


@pytest.mark.usefixtures("service")
def test_reports_become_requests_once(neighbours: Neighbours) -> None:
    """Each report twice, from services of a later version."""
    scope = "asked"
    neighbours.send(*(newer(report) for report in reports_on(scope) for _ in range(2)))
    eventually(lambda: "ScaleStream" in kinds(neighbours, scope), DECIDES_S, "a scale is requested")
    scales = [r.command for r in requests_about(neighbours, scope).values() if isinstance(r.command, c.ScaleStream)]
    assert len(scales) == 1
    eventually(
        lambda: {n.kind for n in _notes(neighbours, scope)} == set(c.DecisionKind), DECIDES_S, "both kinds are noted"
    )
    assert all(note.reason for note in _notes(neighbours, scope))


@pytest.mark.usefixtures("service")
def test_dead_letters_are_what_cannot_be_read(neighbours: Neighbours) -> None:
    """Kept as they were, with the reason, and their keys go on."""
    good = reports_on("unknown")
    requests = [msgspec.structs.replace(report, value=examples.requests()[0].value) for report in good]
    bad = [*requests, *(e for report in good for e in garbage(report))]
    offsets = neighbours.send(*bad)
    neighbours.send(*good)
    eventually(lambda: "ScaleStream" in kinds(neighbours, "unknown"), DECIDES_S, "its key goes on")
    eventually(lambda: len(neighbours.dead_letters()) >= len(bad), DECIDES_S, "all are given up")
    neighbours.check_dead_letters(offsets, bad)


class TestAsContainer(ContainerContract):
    pass


class TestEnd(EndContract):
    pass


def _notes(neighbours: Neighbours, scope: str) -> list[c.RecordDecision]:
    return [r.command for r in requests_about(neighbours, scope).values() if isinstance(r.command, c.RecordDecision)]


def _now(report: Example) -> Example:
    """Sent now: a report on a load holds for ten minutes."""
    value = report.json()
    value["at"] = round(time.time() * 1000)
    return msgspec.structs.replace(report, value=msgspec.json.encode(value))
