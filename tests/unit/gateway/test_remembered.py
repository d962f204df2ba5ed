"""Proofs that are remembered: for how long, and how many."""

from api_gateway.security.remembered import Remembered


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_proof_that_is_over_leaves_when_another_comes_and_one_that_counts_stays() -> None:
    clock = Clock()
    remembered = Remembered[str](100, 60.0, clock)
    over, counts = (remembered.digest(name) for name in ("over", "counts"))
    remembered.put(over, "x", seconds=5.0)
    remembered.put(counts, "y")
    clock.now = 30.0
    remembered.put(remembered.digest("new"), "z")
    assert remembered.held == 2 and remembered.get(counts) == "y" and remembered.get(over) is None


def test_the_oldest_proof_leaves_where_there_are_too_many() -> None:
    remembered = Remembered[int](2, 60.0, Clock())
    first, second, third = (remembered.digest(str(n)) for n in range(3))
    for n, digest in enumerate((first, second, third)):
        remembered.put(digest, n)
    assert (remembered.get(first), remembered.get(second), remembered.get(third)) == (None, 1, 2)


def test_text_that_a_file_holds_in_no_encoding_has_a_digest_too() -> None:
    remembered = Remembered[int](2, 60.0, Clock())
    assert remembered.digest("a\udcff") != remembered.digest("a")
