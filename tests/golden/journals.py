"""Golden journals as files, and what they fold into: of each state its version, its type and a digest.

The states themselves are shown on demand (`python -m golden --show`), by this release or a former one.
"""

import hashlib
import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence, Set
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from sluice.domain.model import DomainModel
from sluice.domain.transaction.ended import EndedTransactions
from sluice.domain.workflow import WorkflowKind, running
from sluice.engine.fold import Outcome, PartitionView
from sluice.engine.markers import PartitionMarkers
from sluice.engine.partition import partition_keys, partition_of
from sluice.engine.snapshots import FORMAT, joined, sliced
from sluice.memory.broker import MemoryMessage

FOLDER = Path(__file__).resolve().parents[1] / "contract" / "golden"
_LETTERS = {Outcome.COUNTED: "c", Outcome.STALE: "s", Outcome.DUPLICATE: "d"}


class Line(msgspec.Struct, frozen=True):
    """A record: `at` is when the log took it, in epoch ms, `value` its value as it was written."""

    partition: int
    at: int
    value: msgspec.Raw


_lines = msgspec.json.Decoder(Line)


class Golden(msgspec.Struct, frozen=True):
    """One journal of one release. The partitions' records stand in the order of their offsets."""

    version: str
    name: str

    @property
    def journal(self) -> Path:
        return FOLDER / self.version / f"{self.name}.jsonl"

    @property
    def result(self) -> Path:
        return FOLDER / self.version / f"{self.name}.result.json"

    @property
    def snapshot(self) -> Path:
        return FOLDER / self.version / f"{self.name}.snapshot"

    def lines(self) -> list[Line]:
        return [_lines.decode(line) for line in self.journal.read_bytes().splitlines()]


class GoldenSnapshot(msgspec.Struct, frozen=True):
    """What was captured behind a journal: of each partition the bytes that the chunks of its snapshot hold together."""

    format: int
    partitions: list[bytes]

    def result(self) -> str:
        """What the state comes to that this release restores from it, as JSON; it knows nothing of outcomes."""
        keys = partition_keys(len(self.partitions))
        model = DomainModel()

        def view_of(key: str) -> PartitionView:
            return views[partition_of(key, len(views))]

        views = [PartitionView(model, key, view_of, lambda: views) for key in keys]
        for view, captured in zip(views, self.partitions, strict=True):
            view.restore(joined([captured]))
        return _as_json([_result(view) for view in views])


_snapshots = msgspec.msgpack.Decoder(GoldenSnapshot)


def snapshot_in(file: Path) -> GoldenSnapshot:
    return _snapshots.decode(file.read_bytes())


def all_golden() -> list[Golden]:
    return [Golden(path.parent.name, path.stem) for path in sorted(FOLDER.glob("*/*.jsonl"))]


def lines_of(logs: Sequence[Sequence[MemoryMessage]]) -> list[Line]:
    """A journal in memory, one partition after the other."""
    return [Line(m.partition(), m.timestamp()[1], msgspec.Raw(m.value())) for log in logs for m in log]


class Folded:
    """A journal folded by this release. `outcomes` has for each partition a word per record, a letter per entry.

    `fields` are those that have been set, by their type's name and their own, `workflows` the kinds that came by.
    `markers` compare with what the writers found at theirs.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        model = DomainModel()
        self.partitions = max(line.partition for line in lines) + 1
        keys = partition_keys(self.partitions)
        self.views = [PartitionView(model, key, self._view, lambda: self.views) for key in keys]
        self.outcomes: list[list[str]] = [[] for _ in keys]
        self.markers = [PartitionMarkers(partition) for partition in range(self.partitions)]
        self.fields: set[tuple[str, str]] = set()
        self.workflows: set[WorkflowKind] = set()
        for line in lines:
            record = model.decode(bytes(line.value))
            view = self.views[line.partition]
            outcomes = view.fold(record, view.next_offset, line.at)
            self.outcomes[line.partition].append("".join(_LETTERS[outcome] for outcome in outcomes))
            if record.marker is not None:
                markers = self.markers[line.partition]
                markers.compare(record.marker, view.next_offset - 1, record.by)
                markers.passed(view.next_offset - 1, record.id, line.at, view.outcome_hash)
            events = [event for entry in record.entries for event in entry.events]
            self.fields.update(_set_fields(record))
            self.workflows.update(w.kind for e in events if (w := running(view.get(e.aggregate))) is not None)

    @property
    def kinds_of_outcomes(self) -> set[Outcome]:
        return {outcome for outcome, letter in _LETTERS.items() if any(letter in w for ws in self.outcomes for w in ws)}

    def _view(self, key: str) -> PartitionView:
        return self.views[partition_of(key, self.partitions)]

    def result(self) -> str:
        """What the journal comes to, as JSON."""
        results = zip(self.outcomes, self.views, strict=True)
        return _as_json([{"outcomes": " ".join(outcomes), **_result(view)} for outcomes, view in results])

    def states(self) -> str:
        """All that `result` has digests of, as JSON that two releases can be compared by."""
        found = ((*sorted(view.aggregates()), *sorted(view.projections())) for view in self.views)
        return _as_json([{name: shown(state) for name, state in states} for states in found])

    def snapshot(self) -> GoldenSnapshot:
        return GoldenSnapshot(FORMAT, [b"".join(sliced(view.capture(), {})) for view in self.views])


def without_outcomes(result: str) -> str:
    """A result as a snapshot comes to it."""
    return _as_json([{k: v for k, v in view.items() if k != "outcomes"} for view in json.loads(result)])


def _as_json(views: list[dict[str, Any]]) -> str:
    return json.dumps(views, indent=1, ensure_ascii=False) + "\n"


def _result(view: PartitionView) -> dict[str, Any]:
    return {
        "aggregates": {
            name: f"{view.version(name)} {type(state).__name__} {_digest(state)}"
            for name, state in sorted(view.aggregates())
        },
        "projections": {name: _digest(found) for name, found in sorted(view.projections())},
        "under way": dict(sorted(view.under_way().items())),
        "capture": _checksum(view),
    }


def _digest(state: Any) -> str:
    return hashlib.sha256(json.dumps(shown(state)).encode()).hexdigest()[:16]


def _checksum(view: PartitionView) -> str:
    """Of the whole state as a snapshot has it, in hex digits."""
    checksum = hashlib.sha256()
    for part in view.capture():
        checksum.update(msgspec.msgpack.encode(part))
    return checksum.hexdigest()


def shown(value: Any) -> Any:
    """A state as JSON can hold it. Fields at their defaults are left out, as a later release may add some."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Enum():
            return value.value
        case bytes():
            return b64encode(value).decode()
        case msgspec.Struct():
            return {"is": type(value).__name__, **dict(_fields(value))}
        case dict() | MappingProxyType():
            return _shown_mapping(value)
        case Set():
            return sorted(shown(each) for each in value)
        case tuple() | list() | EndedTransactions():
            return [shown(each) for each in value]
    raise TypeError(f"{type(value).__name__} has no form in a golden result")


def _fields(state: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    return ((name, shown(value)) for name, value in _beyond_defaults(state))


def _beyond_defaults(struct: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(struct):
        value = getattr(struct, field.name)
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        else:
            default = field.default
        if value != default:
            yield field.name, value


def _set_fields(value: Any) -> Iterator[tuple[str, str]]:
    """Each field in a message that has another value than its default, and "" for each type that comes by."""
    match value:
        case msgspec.Struct():
            yield type(value).__name__, ""
            for name, inner in _beyond_defaults(value):
                yield type(value).__name__, name
                yield from _set_fields(inner)
        case dict():
            for inner in value.values():
                yield from _set_fields(inner)
        case tuple() | list() | EndedTransactions():
            for inner in value:
                yield from _set_fields(inner)


def _shown_mapping(mapping: Mapping[Any, Any]) -> Any:
    """One without values is a list in which order counts; else the order is that of the keys."""
    if mapping and all(value is None for value in mapping.values()):
        return [shown(key) for key in mapping]
    return {key: shown(value) for key, value in sorted((str(shown(k)), v) for k, v in mapping.items())}
