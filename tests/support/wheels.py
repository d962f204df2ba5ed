"""The wheels of this clone's distributions: built as an installer would, and read without being installed."""

import re
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

from hatchling.build import build_wheel
from packaging.metadata import Metadata
from packaging.requirements import Requirement

CLONE = Path(__file__).resolve().parents[2]
PROJECTS = tuple(
    path.parent.relative_to(CLONE).as_posix()
    for pattern in ("shared", "shared/*", "services/*", "cli", "dev", "deploy/*", "examples/*")
    for path in sorted(CLONE.glob(f"{pattern}/pyproject.toml"))
)
"""The folders of all distributions."""


@dataclass(frozen=True)
class Wheel:
    """What a wheel says of itself, and the files that it installs, but those that describe it."""

    path: Path
    metadata: Metadata
    package: str
    files: frozenset[str]
    sources: Mapping[str, str]
    licence: str

    @property
    def requirements(self) -> list[Requirement]:
        """Those of all extras, too."""
        return self.metadata.requires_dist or []


def build(project: str, into: Path) -> Wheel:
    """Build the wheel of a folder of the clone.

    Raises KeyError if it has no licence, and what hatchling and packaging refuse in its description.
    """
    with chdir(CLONE / project):
        path = into / build_wheel(str(into))
    with zipfile.ZipFile(path) as wheel:
        (description,) = (name for name in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        info = description.removesuffix("METADATA")
        files = {name for name in wheel.namelist() if not name.startswith(info)}
        (package,) = {name.partition("/")[0] for name in files}
        return Wheel(
            path=path,
            metadata=Metadata.from_email(wheel.read(description)),
            package=package,
            files=frozenset(files),
            sources={name: wheel.read(name).decode() for name in files if name.endswith(".py")},
            licence=wheel.read(f"{info}licenses/LICENSE").decode(),
        )


def required(requirements: Iterable[Requirement], extras: Iterable[str] = ()) -> list[Requirement]:
    """Those of a distribution's requirements that count here if it is installed with these extras."""
    wanted = {"", *extras}
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": extra}) for extra in wanted)
    ]
