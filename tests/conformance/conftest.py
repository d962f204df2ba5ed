"""The targets of the cases, one after the other: Pravega's own controller, `sluice dev`, the system under test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.case import DEV, PEER, SLUICE, Case
from conformance.peer import Peer
from conformance.running import Runner
from harness import System
from sluice_dev.process import dev_process
from sluice_local import jars, setup
from sluice_local.settings import LocalSettings

_IN_TURN = (PEER, DEV, SLUICE)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One target after the other, in all files: each is started once."""
    indices = [index for index, item in enumerate(items) if _target(item) in _IN_TURN]
    in_order = sorted((items[index] for index in indices), key=lambda item: _IN_TURN.index(_target(item)))
    for index, item in zip(indices, in_order, strict=True):
        items[index] = item


@pytest.fixture(scope="module")
def runner(request: pytest.FixtureRequest, runs_folder: Path) -> Iterator[Runner]:
    """Runs all cases that were selected for one target."""
    target: str = request.param
    if target == PEER:
        settings = LocalSettings()
        jars.fetch_besides(jars.PEER, settings.jars_dir, setup.say)
        with Peer(settings.jars_dir, runs_folder / PEER) as peer:
            yield from _running(request, target, peer.address, peer.rest_url)
    elif target == DEV:
        with dev_process() as dev:
            yield from _running(request, target, dev.controller, dev.rest)
    else:
        with System(runs_folder / "conformance") as system:
            yield from _running(request, target, system.grpc_address, system.rest_url)


def _running(request: pytest.FixtureRequest, target: str, address: str, rest_url: str) -> Iterator[Runner]:
    runner = Runner(SLUICE if target == DEV else target, address, rest_url)
    runner.begin(_selected(request, target))
    yield runner
    runner.close()


def _target(item: pytest.Item) -> Any:
    """The target of a case; None for what is no case."""
    parameters = getattr(item, "callspec", None)
    return parameters.params.get("runner") if parameters is not None else None


def _selected(request: pytest.FixtureRequest, target: str) -> Iterator[Case]:
    for item in request.session.items:
        if _target(item) == target:
            yield item.callspec.params["case"]  # type: ignore[attr-defined]
