"""`python -m sluice_release make` makes all that is released into `dist`; `reference` only the pages on the libraries.

What is made comes from the last commit alone. `dist` is replaced at the end, by what was installed and tried.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from sluice_release import artefacts, images, strangers, tools
from sluice_release.commands import ReleaseError
from sluice_release.source import Source, committed, packed

CLONE = Path(__file__).resolve().parents[3]
HOME = Path(os.environ.get("SLUICE_HOME") or CLONE / ".sluice").absolute()
DIST = CLONE / "dist"
BEGAN = time.monotonic()


def say(line: str) -> None:
    """Show progress."""
    print(f"release: {line} ({time.monotonic() - BEGAN:.0f} s)", flush=True)


def make() -> None:
    """Make the release. Raises ReleaseError."""
    with tempfile.TemporaryDirectory(prefix="sluice-release-") as scratch:
        folder = Path(scratch)
        source = committed(CLONE, folder / "tree")
        say(f"{source.version}, {source.released}: from the last commit")
        made = folder / "made"
        made.mkdir()
        artefacts.build(source, made)
        say(f"wheels and source archives of {len(source.distributions)} distributions, chart, manifests")
        _reference(source, made)
        _try(source, folder, made)
        if images.engine_answers():
            for name in images.build(source, HOME, made / f"sluice-images-{source.version}.tar"):
                say(f"image {name}")
        else:
            say("NO IMAGES: no container engine answers")
        artefacts.write_sums(made)
        shutil.rmtree(DIST, ignore_errors=True)
        shutil.copytree(made, DIST)
    say(
        f"{DIST.name}: {len(list(DIST.iterdir()))} files, {sum(path.stat().st_size for path in DIST.iterdir()):,} bytes"
    )


def _reference(source: Source, made: Path) -> None:
    name = f"sluice-reference-{source.version}"
    tools.write_reference(tools.environment(HOME), source.tree, source.tree / name)
    packed(source, made / f"{name}.tar.gz", name, {name: ""})
    say("reference of the libraries")


def _try(source: Source, folder: Path, made: Path) -> None:
    pythons = strangers.interpreters()
    if not pythons:
        raise ReleaseError(f"no Python of {', '.join(strangers.VERSIONS)} is on the path")
    for version in strangers.VERSIONS:
        if version not in pythons:
            say(f"NOT TRIED on Python {version}: there is no python{version} on the path that runs")
            continue
        read = strangers.try_wheels(pythons[version], folder / version, made)
        say(f"tried on Python {version}: installed from wheels, sluice --help, sluice dev, first event: {read}")
    lock = folder / "locked.txt"
    lock.write_text(source.lock())
    described = strangers.install_locked(next(iter(pythons.values())), folder / "bill", made, lock)
    bill = made / f"sluice-{source.version}.cdx.json"
    tools.write_bill(tools.environment(HOME), described, bill, source.epoch_s)
    say("bill of materials of all distributions with the locked packages that they need")


def main(arguments: list[str]) -> int:
    """Do what is asked; 1 if that failed."""
    try:
        if arguments == ["make"]:
            make()
        elif arguments == ["reference"]:
            tools.write_reference(tools.environment(HOME), CLONE, DIST / "reference")
            say(f"{(DIST / 'reference').relative_to(CLONE)}/index.html")
        else:
            raise ReleaseError(f"make or reference, not {' '.join(arguments)}")
    except ReleaseError as error:
        print(f"release: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
