"""Faults that are drawn from a seed, and what is said of the calls that they disturb."""

from collections import Counter
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from support.answers import Answer, Answers, Happened
from support.faults import Event, Faults

from harness import System


@pytest.fixture
def faults(tmp_path: Path) -> Faults:
    """Of a system that does not run."""
    return Faults(System(tmp_path, kafka_brokers=3, api_gateways=2))


def drawn(faults: Faults, seed: int, count: int) -> list[tuple[Event, float]]:
    return list(islice(faults.mixture(Random(seed)), count))


def test_the_same_seed_draws_the_same_faults_and_times(faults: Faults) -> None:
    first, second, other = (drawn(faults, seed, 200) for seed in (1, 1, 2))
    assert [(e.name, e.hits, lasts_s) for e, lasts_s in first] == [(e.name, e.hits, lasts_s) for e, lasts_s in second]
    assert [event.name for event, _ in first] != [event.name for event, _ in other]


def test_each_single_fault_comes_as_often_as_any_other(faults: Faults) -> None:
    names = {event.name for event in faults.single}
    assert {"kafka killed", "group coordinator killed", "bookie frozen", "partition without a leader"} <= names
    counts = Counter(event.name for event, _ in drawn(faults, 3, 500) if event.name in names)
    assert counts.keys() == names and max(counts.values()) - min(counts.values()) <= 1


def test_two_faults_at_once_never_hit_the_same(faults: Faults) -> None:
    pairs = {event.hits for event, _ in drawn(faults, 4, 500) if " and " in event.name}
    assert len(pairs) > 50
    assert all(one != other for one, other in (hits.split(" ") for hits in pairs))


def test_calls_that_need_the_partition_without_a_leader_wait_for_it(faults: Faults) -> None:
    waits = faults.named("partition without a leader").waits
    of = {
        (rpc, p): Answer("a", rpc, frozenset({p}), 0.0) for rpc in ("sealStream", "listStreamsInScope") for p in (0, 1)
    }
    assert [key for key, answer in of.items() if not waits(answer)] == [("sealStream", 1)]


def answered(began: float, ended: float, failure: str = "", gateway: str = "a") -> Answer:
    return Answer(gateway, "createStream", frozenset({1}), began, ended, failure)


def test_the_last_late_call_says_when_all_are_prompt_since_begin_and_since_end() -> None:
    calls = [answered(9.0, 9.5), answered(10.0, 12.5), answered(11.0, 11.2, "UNAVAILABLE"), answered(13.0, 13.1)]
    calls += [answered(20.5, 22.0), answered(23.0, 23.9), answered(31.0, 39.0)]
    effect = Answers(1, ended=calls).effect(Happened("fault", 10.0, 20.0, 30.0, lambda _: False))
    assert (effect.from_begin_s, effect.from_end_s, effect.of) == (2.5, 2.0, 5)
    assert effect.p99_s == 2.5 and effect.failures == {"UNAVAILABLE": 1}


def test_calls_that_wait_for_the_end_count_from_there() -> None:
    calls = [answered(10.0, 10.1), answered(10.0, 18.0, "DEADLINE_EXCEEDED", "b"), answered(15.0, 21.0, gateway="b")]
    effect = Answers(1, ended=calls).effect(Happened("fault", 10.0, 20.0, 30.0, lambda call: call.gateway == "b"))
    assert (effect.from_begin_s, effect.from_end_s) == (0.0, 1.0)
