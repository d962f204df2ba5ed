"""Every block of code of the tutorial runs as it stands and prints what the page says."""

import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

PAGE = Path(__file__).parents[5] / "docs" / "client-library.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```\n\n((?:    [^\n]*\n)+)", PAGE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize(("block", "printed"), BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_the_tutorial_prints_what_the_page_says(block: str, printed: str) -> None:
    done = subprocess.run([sys.executable, "-c", block], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == dedent(printed)


def test_every_block_of_the_tutorial_says_what_it_prints() -> None:
    assert len(BLOCKS) == PAGE.read_text().count("```python") > 0
