"""Who the cases are asked of: Pravega's own controller first, and when it is gone the system under test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.case import PEER, Case
from conformance.peer import Peer, fetch_jars
from conformance.running import Runner
from harness import System
from sluice_local.settings import LocalSettings


@pytest.fixture(scope="session")
def runner(request: pytest.FixtureRequest, runs_folder: Path) -> Iterator[Runner]:
    """Runs all cases that were selected for one target."""
    target: str = request.param
    if target == PEER:
        settings = LocalSettings()
        fetch_jars(settings)
        with Peer(settings.jars_dir, runs_folder / PEER) as peer:
            yield from _running(request, target, peer.address, peer.rest_url)
    else:
        system: System = request.getfixturevalue("system")
        yield from _running(request, target, system.grpc_address, system.rest_url)


def _running(request: pytest.FixtureRequest, target: str, address: str, rest_url: str) -> Iterator[Runner]:
    runner = Runner(target, address, rest_url)
    runner.begin(_selected(request, target))
    yield runner
    runner.close()


def _selected(request: pytest.FixtureRequest, target: str) -> Iterator[Case]:
    for item in request.session.items:
        parameters = getattr(item, "callspec", None)
        if parameters is not None and parameters.params.get("runner") == target:
            yield parameters.params["case"]
