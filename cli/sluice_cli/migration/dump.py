"""A dump of an original: a folder with one line for each thing, of all its tables.

`things.jsonl` is only appended to, and the last line of a thing is the one that counts. So a dump that was ended in the
middle goes on where it was; and a second reading appends what differs from the first. What the index of a scope does
not name any more is not part of the dump. `manifest.json` is written last: without it a dump is unfinished.
`decoded.jsonl` says the same for people, when that is asked for; nothing reads it. One process writes a dump at a time.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from sluice.domain.host import Host
from sluice.lookback.progress import Advance, Progress
from sluice.pravega.container_map import CONTAINER_MAP_NODE, CONTROLLERS_NODE, decode_host
from sluice.pravega.envelope import MalformedPayload
from sluice_cli.errors import RefusedError
from sluice_cli.migration import raw
from sluice_cli.migration.model import Cluster, Thing, Unreadable
from sluice_cli.migration.raw import Name, Raw
from sluice_cli.migration.source import Source
from sluice_cli.migration.tables import UnreadableEntry

THINGS, MANIFEST, DECODED = "things.jsonl", "manifest.json", "decoded.jsonl"
FORMAT = 1
COUNTER = "counter"
"""The node of the last id of a transaction that may have been given; it comes with the first transaction."""
BROUGHT = frozenset({COUNTER, CONTAINER_MAP_NODE})
"""The nodes that are brought along. Of the others, some go seconds after the controller that made them."""
AT_A_TIME = 16
"""Things that are looked at; how many tables that is, is the source's business."""

_BELOW_CONTROLLERS = f"{CONTROLLERS_NODE}/"

_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Raw)


class _Line(msgspec.Struct):
    """So much of a line as says what it is of."""

    of: Name


_line = msgspec.json.Decoder(_Line)


class Manifest(msgspec.Struct, frozen=True, rename="camel"):
    """`changed` are the things that were not the same when read again, in the last round; none: nothing moved."""

    format: int
    began_ms: int
    ended_ms: int
    rounds: int
    changed: tuple[Name, ...]
    things: int
    sha256: str


class Dump:
    """A dump that is finished or under way. Reads raise UnreadableEntry and, if something is missing, RefusedError."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / THINGS
        self._folder = folder
        self._at = dict(_lines(self._path))

    @property
    def manifest(self) -> Manifest | None:
        """None if the dump is unfinished. Raises RefusedError if the things are not those that it is of."""
        path = self._folder / MANIFEST
        if not path.exists():
            return None
        found = msgspec.json.decode(path.read_bytes(), type=Manifest)
        if found.format != FORMAT or found.sha256 != _digest(self._path):
            raise RefusedError(f"{self._path} is not what {path} was written for", "make the dump anew")
        return found

    @property
    def flaw(self) -> str:
        """Why it cannot be the last one of its original, which is imported; empty: it can. Raises as `manifest`."""
        manifest = self.manifest
        if manifest is None:
            return "is not finished"
        if manifest.changed:
            return "changed between its last two readings"
        if self.controllers:
            return f"was made while controllers were registered: {', '.join(self.controllers)}"
        return ""

    def get(self, of: Name) -> Raw | None:
        """The newest line of it."""
        return self._read(self._at[of]) if of in self._at else None

    def _read(self, at: int) -> Raw:
        with self._path.open("rb") as file:
            file.seek(at)
            return _decoder.decode(file.readline())

    def __getitem__(self, of: Name) -> Raw:
        found = self.get(of)
        if found is None:
            raise RefusedError(f"the dump has no {of.kind} {of.scope}/{of.name}", "let `sluice migrate dump` finish it")
        return found

    @property
    def end(self) -> int:
        """How far it has come: where the next line begins."""
        return self._path.stat().st_size if self._path.exists() else 0

    def append(self, found: Raw) -> None:
        """Its new line."""
        with self._path.open("ab") as file:
            self._at[found.of] = file.tell()
            file.write(_encoder.encode(found) + b"\n")

    def scopes(self) -> Iterator[Raw]:
        """All scopes, by name."""
        for name, id in sorted(raw.scopes(self[Name(raw.CLUSTER)]).items()):
            yield self[Name(raw.SCOPE, "", name, id)]

    def names(self, since: int = 0) -> Iterator[Name]:
        """All streams, groups and tables: by scope, kind and name. With `since`, an earlier `end`, the newer ones."""
        for scope in self.scopes():
            yield from (name for name in raw.members(scope) if self._at.get(name, since) >= since)

    def nodes(self) -> dict[str, bytes]:
        """The data of all nodes, by path below that of the cluster."""
        return {path: data for top in self.tops() for path, data in self[top].values("").items()}

    def tops(self) -> list[Name]:
        """What the nodes are kept under."""
        return sorted(name for name in self._at if name.kind == raw.NODES)

    @property
    def controllers(self) -> tuple[str, ...]:
        """Those that were registered: they ran when it was read, or seconds before."""
        below = _BELOW_CONTROLLERS
        return tuple(sorted(path.removeprefix(below) for path in self.nodes() if path.startswith(below)))

    def controllers_ever(self) -> Iterator[Host]:
        """Where those listened that any reading found: what a later one did not find any more is still in the file."""
        for name, at in _lines(self._path):
            for path, data in self._read(at).values("").items() if name.kind == raw.NODES else ():
                if path.startswith(_BELOW_CONTROLLERS):
                    with suppress(MalformedPayload):
                        yield decode_host(data)

    @property
    def cluster(self) -> Cluster:
        """See Original."""
        nodes = self.nodes()
        given = raw.counter_of(nodes[COUNTER]) if COUNTER in nodes else 0
        containers = raw.containers_of(nodes[CONTAINER_MAP_NODE]) if CONTAINER_MAP_NODE in nodes else {}
        return raw.cluster(self[Name(raw.CLUSTER)], self.scopes(), given, containers)

    def things(self) -> Iterator[Thing | Unreadable]:
        """See Original."""
        for name in self.names():
            try:
                yield raw.thing(self[name])
            except UnreadableEntry as error:
                yield Unreadable(kind=raw.KINDS[name.kind], scope=name.scope, name=name.name, why=f"{error}")


async def dump(source: Source, folder: Path, rounds: int, now_ms: Callable[[], int], progress: Progress) -> Manifest:
    """Read all of the original, then again and again, `rounds` in all; what is in the folder already was read once.

    So one round reads all of a dump again.
    """
    began = now_ms()
    found, changed = _begun(folder), [Name(raw.CLUSTER)]
    for number in range(1, rounds + 1):
        goes_on = number == 1 < rounds
        changed = await _Round(source, found, goes_on, progress, f"reading, round {number} of {rounds}").run()
    things = sum(1 for _ in found.names())
    manifest = Manifest(FORMAT, began, now_ms(), rounds, tuple(changed), things, _digest(folder / THINGS))
    (folder / MANIFEST).write_bytes(msgspec.json.format(_encoder.encode(manifest)))
    return manifest


def _begun(folder: Path) -> Dump:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (MANIFEST, DECODED):
        (folder / name).unlink(missing_ok=True)
    _mend(folder / THINGS)
    return Dump(folder)


class _Round:
    """Reads all once and appends what is new. One that goes on leaves out the things that the dump has."""

    def __init__(self, source: Source, found: Dump, goes_on: bool, progress: Progress, title: str) -> None:
        self._source = source
        self._dump = found
        self._goes_on = goes_on
        self._progress = progress
        self._title = title
        self._changed: list[Name] = []

    async def run(self) -> list[Name]:
        """What was not in the dump as it is."""
        for nodes in await self._source.nodes():
            self._note(nodes)
        cluster = await self._source.cluster(self._dump.get(Name(raw.CLUSTER)))
        self._note(cluster)
        things: list[Name] = []
        for name, id in sorted(raw.scopes(cluster).items()):
            scope = await self._source.scope(name, id, self._dump.get(Name(raw.SCOPE, "", name, id)))
            self._note(scope)
            things += raw.members(scope)
        left = [name for name in things if not (self._goes_on and self._dump.get(name) is not None)]
        with self._progress(self._title, len(left)) as advance:
            await side_by_side(left, self._read, advance)
        return self._changed

    async def _read(self, name: Name) -> None:
        self._note(await self._source.thing(name, self._dump.get(name)))

    def _note(self, found: Raw) -> None:
        before = self._dump.get(found.of)
        if before != found:
            self._dump.append(found)
        if found.of.kind == raw.NODES:
            is_same = _brought(before) == _brought(found)
        else:
            is_same = before is not None and before.entries == found.entries
        if not is_same:
            self._changed.append(found.of)


def _brought(nodes: Raw | None) -> dict[str, bytes]:
    found = nodes.values("") if nodes is not None else {}
    return {path: data for path, data in found.items() if path in BROUGHT}


async def side_by_side(names: Iterable[Name], work: Callable[[Name], Awaitable[None]], advance: Advance) -> None:
    """Do the work for all of them, a few at a time. Raises what the first one raises that fails."""
    left = iter(names)

    async def work_off() -> None:
        for name in left:
            await work(name)
            advance(1)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(AT_A_TIME):
                group.create_task(work_off())
    except ExceptionGroup as failed:
        # One says enough; the others failed alike, or were called off.
        raise failed.exceptions[0] from failed


def write_decoded(folder: Path, progress: Progress) -> None:
    """Say what is in a finished dump in plain JSON, too."""
    found = Dump(folder)
    names = list(found.names())
    with (folder / DECODED).open("wb") as file, progress("decoding", len(names)) as advance:
        file.write(_said(lambda _: found.cluster, Name(raw.CLUSTER)))
        for name in names:
            file.write(_said(lambda of: raw.thing(found[of]), name))
            advance(1)


def _said(decode: Callable[[Name], Any], of: Name) -> bytes:
    """A line for people; where an entry cannot be read, why."""
    try:
        return _encoder.encode(decode(of)) + b"\n"
    except UnreadableEntry as error:
        return _encoder.encode({"of": of, "unreadable": str(error)}) + b"\n"


def _lines(path: Path) -> Iterator[tuple[Name, int]]:
    """What each whole line is of, and where it begins."""
    if not path.exists():
        return
    at = 0
    with path.open("rb") as file:
        for line in file:
            yield _line.decode(line).of, at
            at += len(line)


def _mend(path: Path) -> None:
    """Cut off a line that was not written to its end."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        end = 0
        for line in file:
            if line.endswith(b"\n"):
                end += len(line)
        file.truncate(end)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
