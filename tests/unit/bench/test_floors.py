"""The sums that calls cannot go below."""

import pytest

from bench import calls, floors
from bench.figures import Figures

PARTS = {part: Figures(1, float(cost), 99.0) for cost, part in enumerate(floors.PARTS, start=1)}
COST = {part: figures.p50_ms or 0.0 for part, figures in PARTS.items()}


def test_steps_that_follow_each_other_add_up() -> None:
    sum_ms = COST[floors.GRPC] + COST[floors.REQUEST] + COST[floors.KAFKA] * 2 + COST[floors.CREATE]
    assert floors.floor_ms(calls.CREATE_STREAM, PARTS) == sum_ms


@pytest.mark.parametrize("missing", [floors.KAFKA, floors.MERGE_SEAL_3])
def test_a_part_without_figures_leaves_no_floor(missing: str) -> None:
    parts = {part: figures for part, figures in PARTS.items() if part != missing}
    assert floors.floor_ms(calls.WHOLE_ONE, parts) is None
    assert floors.floor_ms(calls.CURRENT_SEGMENTS, PARTS) is None


def test_every_part_of_a_formula_is_one_that_is_measured() -> None:
    used = {part for formula in floors.FLOORS.values() for part in formula}
    assert used <= floors.PARTS.keys()
