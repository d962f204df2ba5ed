"""The judge of histories (`tests/judge`): built once for each version of it, and run.

Its versions and hashes stand in its `go.mod` and `go.sum`. What is built lies in the state folder.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sluice_local.settings import LocalSettings

SOURCE = Path(__file__).parent.parent / "judge"
BUILT_S = 300.0
JUDGED_S = 900.0
GO = "/usr/local/go/bin"
"""Where Go is put by hand, mostly on no path."""


@dataclass(frozen=True)
class Verdict:
    """`text` says which streams are guilty, and of what."""

    is_linearizable: bool
    operations: int
    text: str


def judge() -> Path:
    """The program, built if it is not there yet."""
    files = sorted(path for path in SOURCE.iterdir() if path.suffix in (".go", ".mod", ".sum"))
    version = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    program = LocalSettings().home / "judge" / f"judge-{version}"
    if program.exists():
        return program
    go = shutil.which("go") or shutil.which("go", path=GO)
    assert go is not None, "the judge is built by Go, which is not there (on Debian: apt-get install golang-go)"
    program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_name(f"{program.name}.{os.getpid()}")
    command = [go, "build", "-mod=readonly", "-buildvcs=false", "-o", str(unfinished), "."]
    subprocess.run(command, cwd=SOURCE, env={**os.environ, "GOTOOLCHAIN": "local"}, timeout=BUILT_S, check=True)
    unfinished.rename(program)
    return program


def verdict(histories: Iterable[Path], pictures: Path) -> Verdict:
    """What the judge says of histories; what is guilty is drawn in the folder `pictures`."""
    command = [str(judge()), "-pictures", str(pictures), *map(str, histories)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=JUDGED_S, check=False)
    said = re.search(r"^(\d+) operations on \d+ streams, .*: (linearizable|NOT linearizable)$", done.stdout, re.M)
    assert said is not None, f"the judge ended with {done.returncode}: {done.stdout}"
    return Verdict(done.returncode == 0, int(said[1]), done.stdout)
