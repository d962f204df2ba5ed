"""Answers to questions for offsets: one that did not come is not taken for an offset."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluice.kafka.offsets import NONE_SO_LATE, offset_of


def answered(offset: int) -> Future[Any]:
    answer: Future[Any] = Future()
    answer.set_result(SimpleNamespace(offset=offset))
    return answer


def test_an_offset_is_given_and_none_is_a_time_out() -> None:
    assert [offset_of(answered(offset)) for offset in (0, 7)] == [0, 7]
    assert offset_of(answered(NONE_SO_LATE), NONE_SO_LATE) == NONE_SO_LATE
    for offset, least in ((-1, 0), (-1001, 0), (-1001, NONE_SO_LATE)):
        with pytest.raises(KafkaException) as missing:
            offset_of(answered(offset), least)
        assert missing.value.args[0].code() == KafkaError.REQUEST_TIMED_OUT


def test_what_a_broker_refuses_is_raised() -> None:
    refused: Future[Any] = Future()
    refused.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
    with pytest.raises(KafkaException):
        offset_of(refused)
