"""What a release is made of: a tree without anything that is not committed, and the distributions in it."""

import gzip
import io
import re
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import locked
from sluice_release.commands import ReleaseError, run

_FOLDERS = ("shared", "shared/*", "services/*", "cli", "dev", "deploy/*")


@dataclass(frozen=True)
class Source:
    """A tree, and the time of its commit, in seconds: all files of a release have that one."""

    tree: Path
    epoch_s: int

    @property
    def distributions(self) -> list[Path]:
        """The folders of those that are released: all but examples."""
        return [path.parent for folder in _FOLDERS for path in sorted(self.tree.glob(f"{folder}/pyproject.toml"))]

    @property
    def version(self) -> str:
        """Of all distributions. Raises ReleaseError if they differ."""
        versions = {str(_project(folder / "pyproject.toml")["version"]) for folder in self.distributions}
        if len(versions) != 1:
            raise ReleaseError(f"distributions have several versions: {', '.join(sorted(versions))}")
        return versions.pop()

    @property
    def released(self) -> str:
        """What CHANGELOG.md says in the place of the version's date. Raises ReleaseError if it does not know it."""
        found = re.search(
            rf"^## {re.escape(self.version)} \((.*)\)$", (self.tree / "CHANGELOG.md").read_text(), re.MULTILINE
        )
        if found is None:
            raise ReleaseError(f"CHANGELOG.md has no section on {self.version}")
        return found[1]

    def lock(self) -> str:
        """What requirements.lock has for all distributions with all their extras."""
        packages = locked.parse((self.tree / "requirements.lock").read_text())
        named: set[str] = set()
        for folder in self.distributions:
            extras = _project(folder / "pyproject.toml").get("optional-dependencies", {})
            named |= locked.direct(f"{folder}[{','.join(extras)}]")
        return locked.text(locked.closure(named, packages), packages)


def committed(clone: Path, into: Path) -> Source:
    """Clone the last commit of a clone. Raises ReleaseError if that has something else."""
    if changed := run(["git", "status", "--porcelain"], clone):
        raise ReleaseError(f"what is not committed cannot be released:\n{changed}")
    run(["git", "clone", "--quiet", "--depth", "1", clone.as_uri(), into], clone)
    return Source(into, int(run(["git", "log", "-1", "--format=%ct"], into)))


def packed(source: Source, into: Path, root: str, folders: dict[str, str]) -> Path:
    """Pack folders of a tree, each under the name given for it, below `root`: the same bytes from the same commit.

    Links become what they lead to, for what they lead to need not be packed.
    """

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = source.epoch_s, 0, 0, "", ""
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", dereference=True, format=tarfile.PAX_FORMAT) as archive:
        for folder, name in folders.items():
            archive.add(source.tree / folder, f"{root}/{name}".rstrip("/"), filter=plain)
    into.write_bytes(gzip.compress(content.getvalue(), mtime=0))
    return into


def _project(path: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads(path.read_text())["project"]
    return project
