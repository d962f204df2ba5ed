"""Whether clients of three gateways see each stream as one thing, whatever fails: porcupine judges what they saw.

The first seeds are run, each for some thousand operations. What is found guilty can be looked at: the test's folder
has the history, which `tests/judge` judges again, and a drawing of it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from simulation.judged.run import write_history
from support.effort import effort
from support.judge import Verdict, verdict

from sluice.engine.fold import GuardedReader
from sluice.engine.journal import Journal
from sluice.engine.sources import DecidedSources

OPERATIONS = 2_000
SEEDS = effort(8, 3)
BROKEN_OPERATIONS = 1_000
BROKEN_SEEDS = 8


def judged(folder: Path, seed: int, operations: int = OPERATIONS) -> Verdict:
    path = folder / f"history-{seed}.jsonl"
    with path.open("w") as history:
        write_history(seed, history, operations)
    return verdict([path], folder)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_streams_are_linearizable_whatever_fails(seed: int, tmp_path: Path) -> None:
    found = judged(tmp_path, seed)
    assert found.is_linearizable, found.text
    assert found.operations >= OPERATIONS


# The judge can find something: each of these is a product with one line changed.


def read_without_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    async def passed(*_: Any) -> None: ...

    monkeypatch.setattr(Journal, "barrier", passed)


def guard_no_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    get = GuardedReader.get

    def unguarded(reader: GuardedReader, aggregate: str) -> Any:
        found = get(reader, aggregate)
        del reader.seen[aggregate]
        return found

    monkeypatch.setattr(GuardedReader, "get", unguarded)


def decide_for_former_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DecidedSources, "is_decided", lambda *_: False)
    monkeypatch.setattr(DecidedSources, "decide", lambda *_: True)


# What is killed in the middle of what is wrong anyway need not come to its own end.
@pytest.mark.filterwarnings("ignore:.*was never awaited", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("break_it", [read_without_barrier, guard_no_versions, decide_for_former_owners])
def test_a_broken_product_is_found_guilty(
    break_it: Callable[[pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    found = (judged(tmp_path, seed, BROKEN_OPERATIONS) for seed in range(1, 1 + BROKEN_SEEDS))
    guilty = next((each for each in found if not each.is_linearizable), None)
    assert guilty is not None
    assert "is not linearizable" in guilty.text
