"""Scopes under faults: several stream-workflows whose views lag partition by partition, run by seeds.

`SIM_SEED` runs one seed; else the first `SCOPES_SEEDS` (300) are run, for no longer than `SCOPES_SECONDS` (30 s). Where
changes are judged it is 120, however long they take. `make soak` runs as many as one likes.
"""

import os
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from simulation.scopes.run import run_seed
from simulation.seeds import run_for, run_seeds
from simulation.violation import Violation
from support.effort import effort

from sluice.domain.decision import Decision
from sluice.domain.reader_group import decide as group_decide
from sluice.domain.scope import fences
from sluice.domain.stream import decide as stream_decide
from sluice.domain.table import decide as table_decide
from sluice.engine.fold import GuardedReader
from sluice.engine.sources import DecidedSources
from stream_workflows import scope_steps

SECONDS = float(os.environ.get("SCOPES_SECONDS", "30"))
SEEDS = int(os.environ.get("SCOPES_SEEDS", effort(300, 120)))
SEED = os.environ.get("SIM_SEED")
BROKEN_SEEDS = 400


def test_whatever_fails_nothing_is_without_its_scope(capsys: pytest.CaptureFixture[str]) -> None:
    seeds = [int(SEED)] if SEED else range(SEEDS)
    done = run_for(run_seed, seeds, SECONDS)
    with capsys.disabled():
        print(f" {done} seeds", end="")


# The rules can fail: each of these is a product that breaks one promise. `first` is a seed soon before it shows.


def ignore_fences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fences.Fence, "is_raised", lambda *_: True)


def fence_one_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    right = fences.fences_to_raise

    def too_low(reader: Any, scope: str) -> list[fences.Fence]:
        return [fences.Fence(f.key, f.behind, f.position - 1) for f in right(reader, scope)]

    monkeypatch.setattr(fences, "fences_to_raise", too_low)
    monkeypatch.setattr(scope_steps, "fences_to_raise", too_low)


def guard_no_fences(monkeypatch: pytest.MonkeyPatch) -> None:
    get = GuardedReader.get

    def unguarded(reader: GuardedReader, aggregate: str) -> Any:
        found = get(reader, aggregate)
        if aggregate.startswith("fences:"):
            del reader.seen[aggregate]
        return found

    monkeypatch.setattr(GuardedReader, "get", unguarded)


def handle_duplicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DecidedSources, "is_decided", lambda *_: False)


def refuse_without_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = fences.missing_scope

    def hasty(reader: Any, scope: str, context: Any) -> Decision | None:
        return missing(reader, scope, msgspec.structs.replace(context, caught_up=True))

    for module in (stream_decide, group_decide, table_decide):
        monkeypatch.setattr(module, "missing_scope", hasty)


@pytest.mark.parametrize(
    ("break_it", "seen", "first"),
    [
        (ignore_fences, "in it there is|there is no such scope", 10),
        (fence_one_too_low, "in it there is|there is no such scope", 10),
        (guard_no_fences, "behind the fence|there is no such scope", 210),
        (handle_duplicates, "is duplicate, but was folded as", 10),
        (refuse_without_looking, "which was never so", 0),
    ],
)
def test_a_broken_product_is_found(
    break_it: Callable[[pytest.MonkeyPatch], None], seen: str, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_it(monkeypatch)
    with pytest.raises(Violation, match=seen):
        run_seeds(run_seed, range(first, first + BROKEN_SEEDS))
