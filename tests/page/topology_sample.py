"""Streams for the picture, made up: what `…/topology` answers after splits, merges and rolling commits.

Made here and not by the domain, so that a test can say to the millisecond and byte what the picture has to show.
"""

import time
from itertools import pairwise
from random import Random
from typing import Any

NOW = int(time.time() * 1000)
"""The picture grows with the clock, so it has to be about now."""
HOUR = 3_600_000
DUPLICATE = 4

Row = dict[str, Any]
Ranges = list[tuple[float, float]]

_COLUMNS = ("id", "number", "low", "high", "bornEpoch", "born", "endEpoch", "end", "bytes", "flags")
_EPOCH_COLUMNS = ("epoch", "at", "reference", "cause")


class Grown:
    """A stream that began so many hours before `NOW` with so many equal segments; `at` is the time of what comes."""

    def __init__(self, segments: int, hours: float = 24) -> None:
        self.at = NOW - int(hours * HOUR)
        self.rows: list[Row] = []
        self.epochs: list[Row] = [{"epoch": 0, "at": self.at, "reference": 0, "cause": "created"}]
        self._numbers = 0
        bounds = [n / segments for n in range(segments)] + [1.0]
        self.active = [self._born(0, low, high) for low, high in pairwise(bounds)]

    def _born(self, epoch: int, low: float, high: float, number: int | None = None) -> Row:
        if number is None:
            number, self._numbers = self._numbers, self._numbers + 1
            flags = 0
        else:
            flags = DUPLICATE
        row = {"id": epoch << 32 | number, "number": number, "low": low, "high": high, "bornEpoch": epoch}
        row |= {"born": self.at, "endEpoch": -1, "end": 0, "bytes": -1, "flags": flags}
        self.rows.append(row)
        return row

    def _epoch(self, reference: int | None, cause: str) -> int:
        epoch: int = self.epochs[-1]["epoch"] + 1
        number = epoch if reference is None else reference
        self.epochs.append({"epoch": epoch, "at": self.at, "reference": number, "cause": cause})
        return epoch

    def _seal(self, rows: list[Row], epoch: int, size: int) -> None:
        for row in rows:
            row.update(endEpoch=epoch, end=self.at, bytes=size)

    def scale(self, gone: list[Row], ranges: Ranges, size: int = 1_000) -> None:
        """Replace segments; each that goes has so many bytes."""
        epoch = self._epoch(None, "scale")
        self._seal(gone, epoch, size)
        self.active = [row for row in self.active if row not in gone] + [self._born(epoch, *r) for r in ranges]

    def roll(self, epoch: int, size: int = 1_000) -> None:
        """Commit a transaction of an older epoch: its segments' duplicates, then those of the active ones."""
        present = self.epochs[-1]["reference"]
        old = [row for row in self.rows if row["bornEpoch"] <= epoch and not 0 <= row["endEpoch"] <= epoch]
        passing = self._epoch(epoch, "rolling")
        self._seal(self.active, passing, size)
        copies = [self._born(passing, row["low"], row["high"], row["number"]) for row in old]
        self.at += 1
        lasting = self._epoch(present, "rolling")
        self._seal(copies, lasting, 10)
        self.active = [self._born(lasting, row["low"], row["high"], row["number"]) for row in self.active]

    def by_key(self) -> list[Row]:
        """The active segments, the lowest keys first."""
        return sorted(self.active, key=lambda row: row["low"])

    def answer(self, **more: Any) -> dict[str, Any]:
        """As the endpoint has it."""
        rows = sorted(self.rows, key=lambda row: row["id"])
        return {
            "state": "ACTIVE",
            "segments": {name: [row[name] for row in rows] for name in _COLUMNS},
            "epochs": {name: [row[name] for row in self.epochs] for name in _EPOCH_COLUMNS},
            "head": {str(row["id"]): 0 for row in rows if row["bornEpoch"] == 0},
            "subscribers": [],
            "now": NOW,
            "merged": False,
            **more,
        }


def wide(segments: int, scales: int) -> Grown:
    """Many segments; each scale replaces five neighbours by five others."""
    grown, random = Grown(segments, 20), Random(7)
    for number in range(scales):
        grown.at = NOW - 20 * HOUR + number * 19 * HOUR // scales
        present = grown.by_key()
        first = random.randrange(len(present) - 4)
        chosen = present[first : first + 5]
        low, high = chosen[0]["low"], chosen[-1]["high"]
        bounds = [low, *sorted(random.uniform(low, high) for _ in range(4)), high]
        grown.scale(chosen, list(pairwise(bounds)))
    return grown


def rolled() -> Grown:
    """Two segments; a split, then a commit of epoch 0 that rolls, a merge, and another one of epoch 1."""
    grown = Grown(2, 5)
    first, _ = grown.by_key()
    grown.at = NOW - 4 * HOUR
    grown.scale([first], [(0.0, 0.25), (0.25, 0.5)])
    grown.at = NOW - 3 * HOUR
    grown.roll(0)
    grown.at = NOW - 2 * HOUR
    low, middle, _ = grown.by_key()
    grown.scale([low, middle], [(0.0, 0.5)])
    grown.at = NOW - HOUR
    grown.roll(1)
    return grown
