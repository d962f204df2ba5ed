"""What lists are answered from: what the keys of a partition hold of each scope.

A projection, folded from the same events as the aggregates, and without versions. A scope's resources lie in all
partitions, so what is in it is the sum over all views; each keeps its part in order. Code that decides from
that has to show why it suffices: `domain.scope.fences` does so for the deletion of a scope.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import msgspec

from sluice.domain import sorted_names
from sluice.domain.decision import ProjectionReader
from sluice.domain.ids import ResourceKind
from sluice.domain.names import MARK_PREFIX, READER_GROUP_PREFIX
from sluice.domain.reader_group.events import ReaderGroupCreationStarted, ReaderGroupDeleted
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.stream.events import StreamCreationStarted, StreamDeleted, StreamUpdated, StreamUpdateStarted
from sluice.domain.stream.state import Stream
from sluice.domain.table.events import TableCreationStarted, TableDeleted
from sluice.domain.table.state import Table

MEMBERS = "members"
"""The name of the projection; no stream's index has such a name, see `StreamId.transactions`."""

MAX_COUNTED = 10_000
"""Of each kind, to say what is in a scope: some milliseconds."""

Projections = dict[str, Any]

_NO_TAGS: tuple[str, ...] = ()


class Members(msgspec.Struct):
    """What one partition holds of a scope: names by kind, the tags of the streams that have any, and the reverse."""

    streams: list[str] = []
    groups: list[str] = []
    tables: list[str] = []
    tags: dict[str, tuple[str, ...]] = {}
    tagged: dict[str, list[str]] = {}

    @staticmethod
    def of(streams: Mapping[str, tuple[str, ...]], groups: list[str], tables: list[str]) -> "Members":
        """Those that hold these streams, with their tags, and these groups and tables; all in order."""
        members = Members(list(streams), groups, tables)
        for stream, tags in streams.items():
            if tags:
                members.tags[stream] = tags
            for tag in set(tags):
                members.tagged.setdefault(tag, []).append(stream)
        return members

    def names(self, kind: ResourceKind) -> list[str]:
        """The names of a kind, in order."""
        if kind is ResourceKind.STREAM:
            return self.streams
        return self.groups if kind is ResourceKind.READER_GROUP else self.tables

    def is_empty(self) -> bool:
        return not (self.streams or self.groups or self.tables)

    @property
    def internal_streams(self) -> int:
        """How many of the streams have names that begin with an underscore."""
        return sorted_names.count_internal(self.streams)

    def after(self, kind: ResourceKind, name: str, *, internal: bool = True) -> Iterator[str]:
        """The names of a kind behind this one, in order; nothing may be folded meanwhile.

        Without `internal` those that begin with an underscore are passed over.
        """
        return sorted_names.behind(self.names(kind), name, internal=internal)

    def tagged_after(self, tag: str, name: str, *, internal: bool = True) -> Iterator[str]:
        """The streams with a tag behind this name, in the same way."""
        found = self.tagged.get(tag)
        return sorted_names.behind(found, name, internal=internal) if found is not None else iter(())

    def goes_along(self, stream: str) -> bool:
        """Whether a stream is created and deleted together with something else that is here."""
        if stream.startswith(MARK_PREFIX):
            return sorted_names.has(self.streams, stream.removeprefix(MARK_PREFIX))
        group = stream.removeprefix(READER_GROUP_PREFIX)
        return group != stream and sorted_names.has(self.groups, group)

    def resources(self, kind: ResourceKind) -> Iterator[str]:
        """The names of a kind, but for the streams that go along with something else."""
        return (name for name in self.names(kind) if kind is not ResourceKind.STREAM or not self.goes_along(name))


_EMPTY = Members()
"""What a partition has of a scope without anything; never changed."""


def members_of(view: ProjectionReader, scope: str) -> Members:
    """What the partition holds of the scope."""
    found = view.projection(MEMBERS)
    return found.get(scope, _EMPTY) if isinstance(found, dict) else _EMPTY


def in_words(views: Sequence[ProjectionReader], scope: str) -> str:
    """How much of what is in the scope, in words; empty if nothing is. Of a kind it counts only so many."""
    members = [found for view in views if not (found := members_of(view, scope)).is_empty()]
    return ", ".join(filter(None, (_counted(kind, members) for kind in ResourceKind)))


def _counted(kind: ResourceKind, members: Iterable[Members]) -> str:
    names = chain.from_iterable(one.resources(kind) for one in members)
    count = sum(1 for _ in islice(names, MAX_COUNTED + 1))
    number = str(count) if count <= MAX_COUNTED else f"more than {MAX_COUNTED}"
    return f"{number} {kind.value.replace('-', ' ')}{'s' if count > 1 else ''}" if count else ""


def is_empty(views: Sequence[ProjectionReader], scope: str) -> bool:
    """Whether the views show nothing in the scope."""
    return all(members_of(view, scope).is_empty() for view in views)


def _members(projections: Projections, scope: str) -> Members:
    members: dict[str, Members] | None = projections.get(MEMBERS)
    if members is None:
        members = projections[MEMBERS] = {}
    found = members.get(scope)
    if found is None:
        found = members[scope] = Members()
    return found


def _stream_created(projections: Projections, event: StreamCreationStarted, _offset: int) -> None:
    members = _members(projections, event.scope)
    sorted_names.add(members.streams, event.stream)
    _set_tags(members, event.stream, event.config.tags)


def _stream_updated(projections: Projections, event: StreamUpdateStarted | StreamUpdated, _offset: int) -> None:
    config = event.config
    if config is not None:
        _set_tags(_members(projections, event.scope), event.stream, config.tags)


def _stream_deleted(projections: Projections, event: StreamDeleted, _offset: int) -> None:
    members = _members(projections, event.scope)
    _set_tags(members, event.stream, _NO_TAGS)
    _remove(projections, members, event.scope, ResourceKind.STREAM, event.stream)


def _set_tags(members: Members, stream: str, now: tuple[str, ...]) -> None:
    before = members.tags.get(stream, _NO_TAGS)
    if before == now:
        return
    if now:
        members.tags[stream] = now
    else:
        del members.tags[stream]
    for tag in dict.fromkeys(before):
        if tag not in now:
            tagged = members.tagged[tag]
            sorted_names.discard(tagged, stream)
            if not tagged:
                del members.tagged[tag]
    for tag in now:
        if tag not in before:
            sorted_names.add(members.tagged.setdefault(tag, []), stream)


def _group_created(projections: Projections, event: ReaderGroupCreationStarted, _offset: int) -> None:
    sorted_names.add(_members(projections, event.scope).groups, event.group)


def _group_deleted(projections: Projections, event: ReaderGroupDeleted, _offset: int) -> None:
    _remove(projections, _members(projections, event.scope), event.scope, ResourceKind.READER_GROUP, event.group)


def _table_created(projections: Projections, event: TableCreationStarted, _offset: int) -> None:
    sorted_names.add(_members(projections, event.scope).tables, event.table)


def _table_deleted(projections: Projections, event: TableDeleted, _offset: int) -> None:
    _remove(projections, _members(projections, event.scope), event.scope, ResourceKind.TABLE, event.table)


def _remove(projections: Projections, members: Members, scope: str, kind: ResourceKind, name: str) -> None:
    sorted_names.discard(members.names(kind), name)
    if members.is_empty():
        del projections[MEMBERS][scope]


def restore(projections: Projections, state: Any) -> None:
    """List what a back-up knew; states of other kinds are not in this list."""
    match state:
        case Stream():
            members = _members(projections, state.id.scope)
            sorted_names.add(members.streams, state.id.name)
            _set_tags(members, state.id.name, state.config.tags)
        case ReaderGroup():
            sorted_names.add(_members(projections, state.id.scope).groups, state.id.name)
        case Table():
            sorted_names.add(_members(projections, state.id.scope).tables, state.id.name)


PROJECT: dict[type, Callable[[Projections, Any, int], None]] = {
    StreamCreationStarted: _stream_created,
    StreamUpdateStarted: _stream_updated,
    StreamUpdated: _stream_updated,
    StreamDeleted: _stream_deleted,
    ReaderGroupCreationStarted: _group_created,
    ReaderGroupDeleted: _group_deleted,
    TableCreationStarted: _table_created,
    TableDeleted: _table_deleted,
}
"""What each event does to the projection; it is given the offset of its record, too."""
