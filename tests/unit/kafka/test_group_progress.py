"""How far consumers are: since when a record is open follows from offsets alone."""

from bisect import bisect_left
from collections.abc import Mapping

import pytest

from sluice.kafka.group_progress import AGE_STEP, LEAST_AGE_MS, ages_of
from sluice.kafka.offsets import PartitionId

NOW = 10_000_000
BEGIN = 100


class Log:
    """Times at which records were taken, by partition; offsets begin at BEGIN. `questions` counts."""

    def __init__(self, **times: list[int]) -> None:
        self.questions = 0
        self._times = {(topic, 0): taken for topic, taken in times.items()}

    def first_since(self, times: Mapping[PartitionId, int]) -> dict[PartitionId, int]:
        self.questions += 1
        found = {}
        for place, at in times.items():
            number = bisect_left(self._times[place], at)
            found[place] = BEGIN + number if number < len(self._times[place]) else -1
        return found


@pytest.mark.parametrize("age", [0, 99, 1_000, 60_000, 9_000_000])
def test_an_age_is_found_to_within_a_tenth(age: int) -> None:
    log = Log(a=[NOW - 9_900_000, NOW - age, NOW - age, NOW])
    found = ages_of({("a", 0): 101}, NOW, log.first_since)[("a", 0)]
    assert age <= found <= max(LEAST_AGE_MS, age * AGE_STEP + 1)


def test_one_question_is_about_all_partitions() -> None:
    log = Log(**{f"t{n}": [NOW - n * 1000, NOW] for n in range(50)})
    found = ages_of({(f"t{n}", 0): 100 for n in range(50)}, NOW, log.first_since)
    assert len(found) == 50 and log.questions <= 9


def test_where_nothing_is_open_there_is_no_question() -> None:
    log = Log()
    assert ages_of({}, NOW, log.first_since) == {}
    assert log.questions == 0
