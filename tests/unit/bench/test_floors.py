"""The sums that calls cannot go below."""

import pytest

from bench import calls, floors
from bench.figures import Figures

PARTS = {part: Figures(1, float(cost), 99.0) for cost, part in enumerate(floors.PARTS, start=1)}
COST = {part: figures.p50_ms or 0.0 for part, figures in PARTS.items()}


def test_steps_that_follow_each_other_add_up() -> None:
    assert floors.floor_ms(calls.CREATE_STREAM, PARTS) == COST[floors.KAFKA] * 2 + COST[floors.CREATE]


@pytest.mark.parametrize("missing", [floors.KAFKA, floors.MERGE_SEAL_3])
def test_a_part_without_figures_leaves_no_floor(missing: str) -> None:
    parts = {part: figures for part, figures in PARTS.items() if part != missing}
    assert floors.floor_ms(calls.WHOLE_ONE, parts) is None
    assert floors.floor_ms(calls.CURRENT_SEGMENTS, PARTS) is None


def test_every_part_of_a_formula_is_one_that_is_measured() -> None:
    used = {part for formula in floors.FLOORS.values() for part in formula}
    assert used <= floors.PARTS.keys()


def test_a_formula_in_words_has_the_figures_that_were_summed() -> None:
    parts = {floors.KAFKA: Figures(1, 3.04, 9.0), floors.MERGE_SEAL_3: Figures(1, 9.5, 20.0)}
    words = floors.in_words(calls.WHOLE_ONE, parts)
    assert words == "Kafka 3.0 + Kafka 3.0 + merge beside 3 empty seals 9.5 + Kafka 3.0"
