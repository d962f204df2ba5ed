"""The tables of the original's metadata: which keys each has, what their values are, and where it is.

A table is a frozen struct. A field is one key (`Key`), or all keys that begin alike (`Keys`), by what stands behind
that; so the declaration reads a table and writes it. Rules: controller-metadata-store 2.1 and 2.2. Pure functions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints
from uuid import UUID

import mmh3
import msgspec

from sluice.pravega.envelope import MalformedPayload, PayloadReader
from sluice.pravega.routing import consistent_hash
from sluice_cli.migration import records
from sluice_cli.migration.wire import INT, LONG, NOTHING, RAW_TEXT, UUID_BYTES, Wire, nested

ROOT = "_system/_tables/"
SCOPES = ROOT + "scopes"
DELETED_STREAMS = ROOT + "deletedStreams"
DELETED_TABLES = ROOT + "deletedKVTables"
DELETING_SCOPES = "_system/deletingScopes"
COMPLETED_BATCHES = ROOT + "completedTransactionsBatches"
TAG_CHUNKS = 25
_TAGS_SEED = 798692313
"""The Java hash code of `StreamTags`."""


class Key(NamedTuple):
    """One key; without it the field is None."""

    name: str
    value: Wire


class Keys(NamedTuple):
    """All keys that begin with `prefix`, by the rest."""

    prefix: str
    value: Wire
    key: Callable[[str], Any] = str


class Table(msgspec.Struct, frozen=True, kw_only=True):
    """What is in a table."""


_T = TypeVar("_T", bound=Table)


class UnreadableEntry(ValueError):
    """An entry that is not what it should be."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


def decode_table(type: type[_T], entries: Mapping[str, bytes]) -> _T:
    """Raises UnreadableEntry."""
    keys, prefixes = _layout(type)
    fields: dict[str, Any] = {name: {} for name, _ in prefixes}
    for key, value in entries.items():
        if key in keys:
            name, wire = keys[key]
            fields[name] = _decoded(key, wire, value)
            continue
        name, rest, wire = _prefixed(prefixes, key)
        fields[name][rest] = _decoded(key, wire, value)
    return type(**fields)


def encode_table(table: Table) -> dict[str, bytes]:
    """The entries that it is read from, one by one equal; their order may be another."""
    keys, prefixes = _layout(type(table))
    found = {
        key: wire.encode(value) for key, (name, wire) in keys.items() if (value := getattr(table, name)) is not None
    }
    for name, (prefix, wire, _) in prefixes:
        found |= {f"{prefix}{rest}": wire.encode(value) for rest, value in getattr(table, name).items()}
    return found


@cache
def _layout(type: Any) -> tuple[dict[str, tuple[str, Wire]], tuple[tuple[str, Keys], ...]]:
    keys, prefixes = {}, []
    hints = get_type_hints(type, include_extras=True)
    for name in type.__struct_fields__:
        (mark,) = hints[name].__metadata__
        if isinstance(mark, Key):
            keys[mark.name] = (name, mark.value)
        else:
            prefixes.append((name, mark))
    return keys, tuple(prefixes)


def _prefixed(prefixes: Iterable[tuple[str, Keys]], key: str) -> tuple[str, Any, Wire]:
    for name, (prefix, wire, convert) in prefixes:
        if key.startswith(prefix):
            try:
                return name, convert(key.removeprefix(prefix)), wire
            except ValueError as error:
                raise UnreadableEntry(key, str(error)) from error
    raise UnreadableEntry(key, "no such key is known")


def _decoded(key: str, wire: Wire, value: bytes) -> Any:
    data = PayloadReader(value)
    try:
        found = wire.read(data)
    except (MalformedPayload, TypeError, ValueError) as error:
        raise UnreadableEntry(key, str(error)) from error
    if data.remaining:
        raise UnreadableEntry(key, f"{data.remaining} bytes are left over")
    return found


class Ids(Table, frozen=True):
    """An index: which things there are, by name, and their ids. Scopes, and streams, groups, tables of a scope."""

    ids: Annotated[dict[str, UUID], Keys("", UUID_BYTES)] = {}


class Numbers(Table, frozen=True):
    """The highest segment numbers of what was deleted, by `scope/name`."""

    numbers: Annotated[dict[str, int], Keys("", INT)] = {}


class Names(Table, frozen=True):
    """Numbers that exist: batches of completed transactions, epochs with transactions."""

    numbers: Annotated[dict[int, None], Keys("", NOTHING, int)] = {}


class Completed(Table, frozen=True):
    """A batch of completed transactions, by `<scope>.#.<stream>.#./<id>`."""

    transactions: Annotated[
        dict[str, records.CompletedTransaction], Keys("Key.#.", nested(records.CompletedTransaction))
    ] = {}

    def by_stream(self) -> Iterator[tuple[str, str, UUID, records.CompletedTransaction]]:
        """Scope, stream, id and how each ended."""
        for key, ended in self.transactions.items():
            scope, stream, id = key.split(".#.")
            yield scope, stream, UUID(id.removeprefix("/")), ended


class Transactions(Table, frozen=True):
    """The transactions of an epoch that have not ended."""

    transactions: Annotated[
        dict[UUID, records.ActiveTransaction], Keys("", nested(records.ActiveTransaction), UUID)
    ] = {}


class Writers(Table, frozen=True):
    """What writers noted of their time."""

    writers: Annotated[dict[str, records.WriterMark], Keys("", nested(records.WriterMark))] = {}


class StreamMetadata(Table, frozen=True):
    """A stream. What is None has not been written yet: its creation is unfinished."""

    creation_ms: Annotated[int | None, Key("creationTime", LONG)] = None
    configuration: Annotated[
        records.StreamConfiguration | None, Key("configuration", nested(records.StreamConfiguration))
    ] = None
    transition: Annotated[records.EpochTransition | None, Key("epochTransition", nested(records.EpochTransition))] = (
        None
    )
    truncation: Annotated[records.Truncation | None, Key("truncation", nested(records.Truncation))] = None
    committing: Annotated[
        records.CommittingTransactions | None, Key("committingTxns", nested(records.CommittingTransactions))
    ] = None
    state: Annotated[records.StateRecord | None, Key("state", nested(records.StateRecord))] = None
    current_epoch: Annotated[int | None, Key("currentEpochRecord", INT)] = None
    retention: Annotated[records.RetentionSet | None, Key("retention", nested(records.RetentionSet))] = None
    subscribers: Annotated[records.Subscribers | None, Key("subscriberset", nested(records.Subscribers))] = None
    waiting: Annotated[str | None, Key("waitingRequestProcessor", RAW_TEXT)] = None
    epochs: Annotated[dict[int, records.EpochRecord], Keys("epochRecord-", nested(records.EpochRecord), int)] = {}
    history: Annotated[
        dict[int, records.HistoryChunk], Keys("historyTimeSeriesChunk-", nested(records.HistoryChunk), int)
    ] = {}
    size_shards: Annotated[
        dict[int, records.SealedSizes], Keys("segmentsSealedSizeMapShard-", nested(records.SealedSizes), int)
    ] = {}
    sealed_at: Annotated[dict[int, int], Keys("segmentSealedEpochPath-", INT, int)] = {}
    """By segment id the first epoch without it."""
    retention_cuts: Annotated[
        dict[int, records.RetentionCut], Keys("retentionCuts-", nested(records.RetentionCut), int)
    ] = {}
    subscriber_records: Annotated[dict[str, records.Subscriber], Keys("subscriber_", nested(records.Subscriber))] = {}
    cold_until: Annotated[dict[int, int], Keys("markers-", LONG, int)] = {}
    """By segment id until when it is known to be cold, epoch ms."""

    @property
    def sealed_sizes(self) -> dict[int, int]:
        """By segment id."""
        return {id: size for shard in self.size_shards.values() for id, size in shard.sizes.items()}


class GroupMetadata(Table, frozen=True):
    """A reader group."""

    creation_ms: Annotated[int | None, Key("creationTime", LONG)] = None
    configuration: Annotated[
        records.GroupConfiguration | None, Key("configuration", nested(records.GroupConfiguration))
    ] = None
    state: Annotated[records.ThingStateRecord | None, Key("state", nested(records.ThingStateRecord))] = None


class TableMetadata(Table, frozen=True):
    """A key-value table."""

    creation_ms: Annotated[int | None, Key("creationTime", LONG)] = None
    configuration: Annotated[
        records.TableConfiguration | None, Key("configuration", nested(records.TableConfiguration))
    ] = None
    state: Annotated[records.ThingStateRecord | None, Key("state", nested(records.ThingStateRecord))] = None
    current_epoch: Annotated[int | None, Key("currentEpochRecord", INT)] = None
    epochs: Annotated[dict[int, records.TableEpoch], Keys("epochRecord-", nested(records.TableEpoch), int)] = {}


def completed_batch(number: int) -> str:
    """The name of a batch of completed transactions."""
    return f"{ROOT}completedTransactionsBatch-{number}"


def in_scope(kind: str, scope: str, id: UUID) -> str:
    """The name of a scope's index; `kind` is streams, kvTables or readerGroups."""
    return f"{ROOT}{scope}/{kind}InScope.#.{id}"


def tags_in_scope(scope: str, id: UUID, chunk: int) -> str:
    """The name of a chunk of a scope's index of tags."""
    return f"{ROOT}{scope}/streamTagsInScope.#.{id}.#.{chunk}"


def chunk_of_tags(stream: str) -> int:
    """Which chunk has the tags of a stream."""
    low, _ = mmh3.hash64(stream.encode("utf-16-le", "surrogatepass"), _TAGS_SEED, signed=False)
    return consistent_hash(low, TAG_CHUNKS)


def of_stream(kind: str, scope: str, stream: str, id: UUID) -> str:
    """The name of a stream's table: metadata (a key-value table's, too), epochsWithTransactions, writersPositions or
    transactionsInEpoch-<epoch>.
    """
    return f"{ROOT}{scope}/{stream}/{kind}.#.{id}"


def of_group(scope: str, group: str, id: UUID) -> str:
    """The name of a reader group's table."""
    return of_stream("metadata", scope, f"_readergroups/{group}", id)


def completed_key(scope: str, stream: str, transaction: str) -> str:
    """What follows `Key.#.` in the key of a completed transaction."""
    return f"{scope}.#.{stream}.#./{transaction}"
