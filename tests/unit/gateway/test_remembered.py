"""Proofs that are remembered: for how long, and how many."""

import weakref

from api_gateway.edge.security.remembered import Remembered


class What:
    """What follows from a proof."""


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_proof_that_is_over_leaves_when_another_comes_and_one_that_counts_stays() -> None:
    clock = Clock()
    remembered = Remembered[What](100, 60.0, clock)
    over, counts = What(), What()
    remembered.put(remembered.digest("over"), over, seconds=5.0)
    remembered.put(remembered.digest("counts"), counts)
    held = weakref.ref(over)
    del over
    clock.now = 30.0
    assert held() is not None
    remembered.put(remembered.digest("new"), What())
    assert held() is None and remembered.get(remembered.digest("counts")) is counts


def test_the_oldest_proof_leaves_where_there_are_too_many() -> None:
    remembered = Remembered[int](2, 60.0, Clock())
    first, second, third = (remembered.digest(str(n)) for n in range(3))
    for n, digest in enumerate((first, second, third)):
        remembered.put(digest, n)
    assert (remembered.get(first), remembered.get(second), remembered.get(third)) == (None, 1, 2)


def test_text_that_a_file_holds_in_no_encoding_has_a_digest_too() -> None:
    remembered = Remembered[int](2, 60.0, Clock())
    assert remembered.digest("a\udcff") != remembered.digest("a")
