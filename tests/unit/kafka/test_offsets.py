"""Answers to questions for offsets: one that did not come is not taken for an offset."""

from collections.abc import Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from sluice.kafka.offsets import NONE_SO_LATE, begins_of, ends_of, first_since

A, B = ("a", 0), ("b", 1)


class Admin:
    """Answers with these offsets, or fails with these errors, by topic."""

    def __init__(self, **answers: int | KafkaException) -> None:
        self._answers = answers

    def list_offsets(self, wanted: Mapping[TopicPartition, Any], request_timeout: float) -> dict[Any, Future[Any]]:
        assert wanted and request_timeout == 1.0
        answers: dict[Any, Future[Any]] = {}
        for place in wanted:
            answers[place] = Future()
            answer = self._answers[place.topic]
            if isinstance(answer, KafkaException):
                answers[place].set_exception(answer)
            else:
                answers[place].set_result(SimpleNamespace(offset=answer))
        return answers


@pytest.fixture
def admin() -> Any:
    return Admin(a=0, b=7)


def test_an_offset_is_given_for_each_place(admin: Any) -> None:
    assert begins_of(admin, [A, B], 1.0) == ends_of(admin, [A, B], 1.0) == {A: 0, B: 7}
    assert first_since(admin, {B: 5}, 1.0) == {B: 7}
    assert ends_of(admin, [], 1.0) == {}, "there is no question without a place"


def test_an_offset_that_is_none_is_a_time_out() -> None:
    none_so_late: Any = Admin(a=NONE_SO_LATE, b=7)
    assert first_since(none_so_late, {A: 5, B: 5}, 1.0) == {A: NONE_SO_LATE, B: 7}
    silent: Any = Admin(a=-1001, b=7)
    for admin in (none_so_late, silent):
        for offsets_of in (begins_of, ends_of):
            with pytest.raises(KafkaException) as missing:
                offsets_of(admin, [A, B], 1.0)
            assert missing.value.args[0].code() == KafkaError.REQUEST_TIMED_OUT
    with pytest.raises(KafkaException):
        first_since(silent, {A: 5, B: 5}, 1.0)


def test_what_a_broker_refuses_is_raised() -> None:
    refusing: Any = Admin(a=0, b=KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    with pytest.raises(KafkaException, match="UNKNOWN_TOPIC"):
        ends_of(refusing, [A, B], 1.0)
