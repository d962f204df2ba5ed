"""Every block of code of the tutorial runs as it stands."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[5] / "docs" / "coordination.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
PRINTED = {
    "colours/sky": "another process was faster: The document is not at the version",
    "locks/import": "seconds at least, with fence",
    "Semaphore(": "feeder-1 True {'left': 100}",
    "count-words": "[0, 2, 4, 6, 8]\nThe function of the task raised an error.",
    "next_window": "True",
}


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_tutorial_runs(block: str) -> None:
    (expected,) = [printed for mark, printed in PRINTED.items() if mark in block]
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_the_tutorial_has_its_blocks() -> None:
    assert len(BLOCKS) == len(PRINTED)
