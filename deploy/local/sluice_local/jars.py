"""The jars of the embedded programs, fetched by Maven.

One folder per program and per description in `poms`. A new set replaces the old one at once, so that an
interrupted download leaves nothing half done. Only the standard library is used. `fetch` is not to be run twice at a
time on the same folder: its callers hold a lock.
"""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from sluice_local import progress, stamp

DESCRIPTIONS = Path(__file__).resolve().parent / "poms"
SPARK = "spark"
PROGRAMS = ("kafka", "data-plane", SPARK)
PEER = "peer"
"""Pravega's own controller: fetched only to compare with."""
OBJECT_STORE = "object-store"
"""What Spark needs for files in one: fetched only by its test."""
_STAMP = ".stamp"


def fetch(folder: Path, report: Callable[[str], None], programs: Iterable[str] = PROGRAMS) -> None:
    """Fetch the jars of every program whose description has changed since the last time."""
    for program in programs:
        description = DESCRIPTIONS / f"{program}.pom.xml"
        value = stamp.digest([description])
        if stamp.is_current(folder / program / _STAMP, value):
            continue
        report(f"jars of {program}: fetching with Maven")
        _fetch(description, folder / program, report)
        stamp.set_current(folder / program / _STAMP, value)
        report(f"jars of {program}: {len(list((folder / program).glob('*.jar')))} there")


def fetch_besides(program: str, folder: Path, report: Callable[[str], None]) -> None:
    """Have the jars of a program beside those of `PROGRAMS`; nothing happens if they are there."""
    with stamp.alone(folder):
        fetch(folder, report, (program,))


def _fetch(description: Path, folder: Path, report: Callable[[str], None]) -> None:
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    command = ["mvn", "-B", "-f", str(description), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={new}"]
    progress.run_counting(
        command,
        counted="Downloaded from",
        show=lambda count: report(f"jars of {folder.name}: {count} files downloaded"),
        failure=f"Maven could not fetch the jars of {folder.name}: is a Maven repository reachable from here?",
    )
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
