"""Snapshots under faults: made, confirmed, loaded from and trimmed behind, by seeds.

`SIM_SEED` runs one seed; else the first `SNAPSHOT_SEEDS` (60) are run, for no longer than `SNAPSHOT_SECONDS` (30 s).
Where changes are judged it is 25, however long they take.
"""

import os
from collections.abc import Iterable
from typing import Any

import pytest
from simulation.processes import PROCESS
from simulation.seeds import run_for, run_seeds
from simulation.snapshots.processes import Follower, KeeperProcess
from simulation.snapshots.run import run_seed
from simulation.violation import Violation
from support.effort import effort

from sluice import runtime
from sluice.domain.model import DomainModel
from sluice.domain.stream.events import StreamCreated, StreamSealed

SECONDS = float(os.environ.get("SNAPSHOT_SECONDS", "30"))
SEEDS = int(os.environ.get("SNAPSHOT_SEEDS", effort(60, 25)))
SEED = os.environ.get("SIM_SEED")
BROKEN_SEEDS = 200


def test_whatever_fails_a_loaded_state_is_that_of_folding_everything(capsys: pytest.CaptureFixture[str]) -> None:
    confirmed = 0

    def one(seed: int) -> None:
        nonlocal confirmed
        confirmed += run_seed(seed).confirmed

    done = run_for(one, [int(SEED)] if SEED else range(SEEDS), SECONDS)
    with capsys.disabled():
        print(f" {done} seeds, {confirmed} snapshots left", end="")
    assert confirmed


# The comparisons can fail: each of these is a product in which one process folds otherwise than the others.


class ForgetsSealed(DomainModel):
    """Takes a stream that is sealed for one that is not needed any more, so its version begins anew."""

    def project(self, projections: dict[str, Any], event: Any, state: Any, offset: int) -> Iterable[str]:
        forgotten = super().project(projections, event, state, offset)
        return (event.aggregate,) if isinstance(event, StreamSealed) else forgotten


class MistakesCreations(DomainModel):
    """Takes another creation id than the event says: no entry is judged otherwise for that."""

    def evolve(self, state: Any, event: Any) -> Any:
        found = super().evolve(state, event)
        if isinstance(event, StreamCreated):
            found.creation_id += "?"
        return found


def test_a_process_that_judges_otherwise_is_found_at_a_marker(monkeypatch: pytest.MonkeyPatch) -> None:
    def model() -> DomainModel:
        return ForgetsSealed() if isinstance(PROCESS.get(), Follower) else DomainModel()

    monkeypatch.setattr(runtime, "DomainModel", model)
    with pytest.raises(
        Violation, match=r"api-gateway/\d+: partition \d: cluster-manager/\d+ judged a record differently"
    ):
        run_seeds(run_seed, range(BROKEN_SEEDS))


def test_a_helper_that_folds_otherwise_is_found_at_its_first_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    def model(process: KeeperProcess) -> DomainModel:
        return MistakesCreations() if int(process.settings.instance) % 2 else DomainModel()

    monkeypatch.setattr(KeeperProcess, "helper_model", model)
    with pytest.raises(Violation, match=r"differ; first: aggregate stream:\S+ has another value"):
        run_seeds(run_seed, range(BROKEN_SEEDS))
