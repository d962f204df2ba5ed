"""The part of requirements.lock that one project needs, with its hashes.

The lock says of each package which others require it ("via"), so the packages a project needs are found without an
index: those it names in its pyproject.toml, and whatever has one of them among its "via". Uses the standard library
alone, for it runs before anything is installed.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_OWN = "sluice-streams"


class NotLockedError(Exception):
    """A project names a package that the lock does not have."""


@dataclass(frozen=True, slots=True)
class Locked:
    """One package: its lines in the lock, and the packages that require it."""

    lines: tuple[str, ...]
    via: frozenset[str]


def canonical(name: str) -> str:
    """Return the name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse(lock: str) -> dict[str, Locked]:
    """Read a lock as pip-compile writes it, with annotations on lines of their own."""
    packages: dict[str, Locked] = {}
    block: list[str] = []
    for line in [*lock.splitlines(), "end==0"]:
        if line and not line.startswith((" ", "#")):
            if block:
                name = canonical(re.split(r"[=\[ ]", block[0], maxsplit=1)[0])
                packages[name] = _package(block)
            block = []
        if line.strip() and not line.startswith("#"):
            block.append(line)
    return packages


def _package(block: list[str]) -> Locked:
    via = set()
    for line in block:
        found = re.fullmatch(r"\s+#\s+(?:via\s+)?([A-Za-z0-9][\w.-]*)(?:\[.*\])?", line)
        if found and found[1] != "via":
            via.add(canonical(found[1]))
    return Locked(tuple(line for line in block if not line.lstrip().startswith("#")), frozenset(via))


def direct(project: str) -> set[str]:
    """Return the packages, but our own, that a project names.

    A project is the folder of a pyproject.toml, with the extras that are wanted of it: `shared[journal,service]`.
    Raises KeyError for an extra that it does not have.
    """
    folder, _, extras = project.rstrip("]").partition("[")
    described = tomllib.loads(Path(folder, "pyproject.toml").read_text())["project"]
    named = list(described["dependencies"])
    for extra in filter(None, extras.split(",")):
        named += described["optional-dependencies"][extra]
    names = {canonical(re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0]) for requirement in named}
    return {name for name in names if not name.startswith(_OWN)}


def closure(wanted: Iterable[str], packages: Mapping[str, Locked]) -> set[str]:
    """Return what is wanted and everything that it needs. Raises NotLockedError."""
    needed: set[str] = set()
    new = set(wanted)
    if missing := new - packages.keys():
        raise NotLockedError(f"not in the lock: {', '.join(sorted(missing))}")
    while new:
        needed |= new
        new = {name for name, package in packages.items() if package.via & new} - needed
    return needed


def text(names: Iterable[str], packages: Mapping[str, Locked]) -> str:
    """The part of the lock that has these packages, as pip reads it."""
    return "".join("\n".join(packages[name].lines).rstrip(" \\") + "\n" for name in sorted(names))


def main(arguments: list[str]) -> int:
    """`locked.py LOCK PROJECT... [-- PROJECT...]`: what the first projects need and those behind the dashes do not."""
    lock, *rest = arguments
    split = rest.index("--") if "--" in rest else len(rest)
    packages = parse(Path(lock).read_text())
    wanted, there = (closure(set().union(*map(direct, part)), packages) for part in (rest[:split], rest[split + 1 :]))
    sys.stdout.write(text(wanted - there, packages))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
