"""The rest of a query between two batches: what ends it."""

from collections.abc import Iterator

from confluent_kafka import KafkaError, KafkaException

from retention_spark.batch_pause import BatchPause
from retention_spark.topic_ends import Ends
from sluice.workflows.report_buckets import Outcome

LOOK_MS, LONGEST_S = 1000, 30


class Rest:
    """A pause of a topic whose partitions end there, look by look; the last ends stay. Each look takes `LOOK_MS`.

    None: Kafka does not answer.
    """

    def __init__(self, *ends: dict[int, int] | None) -> None:
        self.now = 0
        self._ends, self._last = iter(ends), ends[-1]
        self.pause = BatchPause(self._look, 0, LONGEST_S, lambda: self.now)

    def _look(self) -> Ends:
        self.now += LOOK_MS
        found = next(self._ends, self._last)
        if found is None:
            raise KafkaException(KafkaError(KafkaError.REQUEST_TIMED_OUT))
        return {("t", partition): end for partition, end in found.items()}

    def wakes(self, *times: tuple[int, int | None]) -> None:
        self.pause.observe(Outcome([], [], bucket, wake_at) for bucket, wake_at in times)

    def waited(self) -> Iterator[float]:
        """For how long each batch waits."""
        number = 0
        while True:
            self.pause.wait(number)
            yield self.pause.waited_s(number)
            number += 1


def test_a_query_rests_until_there_are_reports_and_no_longer_than_it_may() -> None:
    rest = Rest({0: 5}, {0: 5}, {0: 5}, {0: 6}, {0: 6})
    waited = rest.waited()
    assert next(waited) == 1, "the first batch may have begun before the first look"
    assert next(waited) == 3
    assert next(waited) == LONGEST_S + 1


def test_reports_that_came_during_a_batch_are_for_the_next_one() -> None:
    rest = Rest({0: 5, 1: 2}, {0: 5, 1: 3}, {0: 5, 1: 4})
    waited = rest.waited()
    assert [next(waited) for _ in range(3)] == [1, 1, 1]
    assert next(waited) > LOOK_MS / 1000


def test_a_query_rests_until_the_first_time_of_its_buckets() -> None:
    rest = Rest({0: 5})
    waited = rest.waited()
    next(waited)
    rest.wakes((1, 9_500), (2, 5_500), (3, None))
    assert next(waited) == 5, "a timer fires behind its time, not at it"
    rest.wakes((2, None))
    next(waited)
    assert rest.now == 10_000
    rest.pause.begin()
    assert rest.pause.waited_s(0) == 0, "batches of a query that starts anew have the same numbers"
    next(waited)
    assert next(waited) == LONGEST_S + 1, "a query that starts anew knows no times"


def test_a_query_whose_kafka_does_not_answer_does_not_rest() -> None:
    waited = Rest({0: 5}, None).waited()
    assert [next(waited) for _ in range(3)] == [1, 1, 1]


def test_a_query_that_is_to_end_does_not_rest() -> None:
    rest = Rest({0: 5})
    waited = rest.waited()
    next(waited)
    rest.pause.stop()
    assert next(waited) == 1
