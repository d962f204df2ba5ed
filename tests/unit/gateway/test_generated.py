"""The checked-in Python is what the compiler makes of the interface description."""

import subprocess
import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parents[3] / "shared"
PACKAGE = Path("sluice/controller_api")


def test_the_generated_code_is_up_to_date(tmp_path: Path) -> None:
    subprocess.run([sys.executable, LIBRARY / "generate.py", tmp_path], check=True)
    made = {f.name: f.read_text() for f in (tmp_path / PACKAGE).iterdir()}
    there = {f.name: f.read_text() for f in (LIBRARY / PACKAGE).iterdir() if f.is_file()}
    assert made.keys() == there.keys()
    assert [name for name in made if made[name] != there[name]] == []
