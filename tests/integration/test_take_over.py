"""Pravega's own controller serves clients that never rest; Sluice takes its place, and every event is read once.

`python -m bench.take_over` does the same with a large cluster.
"""

from pathlib import Path

import pytest
from support.effort import by_hand

from bench.resting import Size
from bench.take_over import original, take_over

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900), by_hand("the original's controller")]

SMALL = Size(streams=6, epochs=18, groups=2, transactions=8)


@pytest.mark.parametrize("is_killed", [False, True], ids=lambda it: "killed" if it else "ended")
async def test_clients_of_the_original_go_on_when_sluice_takes_its_place(
    is_killed: bool, runs_folder: Path, tmp_path: Path
) -> None:
    with original(runs_folder / "take-over", secure=False) as cluster:
        await take_over(cluster, SMALL, is_killed, tmp_path, print)
