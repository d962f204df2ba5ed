"""What lists are answered from: the scopes of a partition, and what its keys hold of each scope.

Two projections, folded from the same events as the aggregates, and without versions. A scope's resources lie in all
partitions, so what is in it is the sum over all views; each keeps its part in order. Code that decides from
that has to show why it suffices: `domain.scope.fences` does so for the deletion of a scope.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Protocol

import msgspec

from sluice.domain.ids import ResourceKind
from sluice.domain.names import MARK_PREFIX, READER_GROUP_PREFIX
from sluice.domain.reader_group.events import ReaderGroupCreationStarted, ReaderGroupDeleted
from sluice.domain.reader_group.state import ReaderGroup
from sluice.domain.scope.events import ScopeCreated, ScopeDeleted, ScopeDeletionStarted, ScopeKept
from sluice.domain.scope.state import Scope
from sluice.domain.stream.events import StreamCreationStarted, StreamDeleted, StreamUpdated, StreamUpdateStarted
from sluice.domain.stream.state import Stream
from sluice.domain.table.events import TableCreationStarted, TableDeleted
from sluice.domain.table.state import Table

SCOPES = "scopes"
MEMBERS = "members"
"""The names of the projections; no stream's index has such a name, see `StreamId.transactions`."""

MAX_COUNTED = 10_000
"""Of each kind, to say what is in a scope: some milliseconds."""


Projections = dict[str, Any]


_BEHIND_INTERNAL = chr(ord("_") + 1)
"""It sorts behind every name that begins with an underscore, and no name has it."""


_NO_TAGS: tuple[str, ...] = ()


class ProjectionReader(Protocol):
    """Whatever shows the projections of a partition."""

    def projection(self, name: str) -> Any | None: ...


class Scopes(msgspec.Struct):
    """The scopes of a partition by name; `deletions` has the position behind the beginning of each deletion."""

    names: list[str] = []
    deletions: dict[str, int] = {}

    def after(self, name: str) -> Iterator[str]:
        """The scopes behind this name, in order; nothing may be folded meanwhile."""
        return _behind(self.names, name, internal=True)


class Members(msgspec.Struct):
    """What one partition holds of a scope: names by kind, the tags of the streams that have any, and the reverse.

    Names are in order, each once. They are plain lists, since most scopes have
    few names in a partition, and there may be a million in all: one more of 60,000 costs some microseconds.
    """

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
        return bisect_left(self.streams, _BEHIND_INTERNAL) - bisect_left(self.streams, "_")

    def after(self, kind: ResourceKind, name: str, *, internal: bool = True) -> Iterator[str]:
        """The names of a kind behind this one, in order; nothing may be folded meanwhile.

        Without `internal` those that begin with an underscore are passed over.
        """
        return _behind(self.names(kind), name, internal=internal)

    def tagged_after(self, tag: str, name: str, *, internal: bool = True) -> Iterator[str]:
        """The streams with a tag behind this name, in the same way."""
        found = self.tagged.get(tag)
        return _behind(found, name, internal=internal) if found is not None else iter(())

    def goes_along(self, stream: str) -> bool:
        """Whether a stream is created and deleted together with something else that is here."""
        if stream.startswith(MARK_PREFIX):
            return _has(self.streams, stream.removeprefix(MARK_PREFIX))
        group = stream.removeprefix(READER_GROUP_PREFIX)
        return group != stream and _has(self.groups, group)

    def resources(self, kind: ResourceKind) -> Iterator[str]:
        """The names of a kind, but for the streams that go along with something else."""
        return (name for name in self.names(kind) if kind is not ResourceKind.STREAM or not self.goes_along(name))


def _behind(names: list[str], name: str, *, internal: bool) -> Iterator[str]:
    first, last = bisect_right(names, name), len(names)
    if internal:
        return map(names.__getitem__, range(first, last))
    between = range(first, bisect_left(names, "_"))
    return map(names.__getitem__, chain(between, range(bisect_right(names, max(name, _BEHIND_INTERNAL)), last)))


def _has(names: list[str], name: str) -> bool:
    at = bisect_left(names, name)
    return at < len(names) and names[at] == name


def _add(names: list[str], name: str) -> None:
    at = bisect_left(names, name)
    if at == len(names) or names[at] != name:
        names.insert(at, name)


def _discard(names: list[str], name: str) -> None:
    at = bisect_left(names, name)
    if at < len(names) and names[at] == name:
        del names[at]


_EMPTY = Members()
"""What a partition has of a scope without anything; never changed."""


def scopes_of(view: ProjectionReader) -> Scopes:
    found = view.projection(SCOPES)
    return found if isinstance(found, Scopes) else Scopes()


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


def _scopes(projections: Projections) -> Scopes:
    found = projections.get(SCOPES)
    if found is None:
        found = projections[SCOPES] = Scopes()
    assert isinstance(found, Scopes)
    return found


def _members(projections: Projections, scope: str) -> Members:
    members: dict[str, Members] | None = projections.get(MEMBERS)
    if members is None:
        members = projections[MEMBERS] = {}
    found = members.get(scope)
    if found is None:
        found = members[scope] = Members()
    return found


def _scope_created(projections: Projections, event: ScopeCreated, _offset: int) -> None:
    _add(_scopes(projections).names, event.scope)


def _scope_deletion_started(projections: Projections, event: ScopeDeletionStarted, offset: int) -> None:
    _scopes(projections).deletions[event.scope] = offset + 1


def _scope_kept(projections: Projections, event: ScopeKept, _offset: int) -> None:
    _scopes(projections).deletions.pop(event.scope, None)


def _scope_deleted(projections: Projections, event: ScopeDeleted, _offset: int) -> None:
    scopes = _scopes(projections)
    _discard(scopes.names, event.scope)
    scopes.deletions.pop(event.scope, None)


def _stream_created(projections: Projections, event: StreamCreationStarted, _offset: int) -> None:
    members = _members(projections, event.scope)
    _add(members.streams, event.stream)
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
            _discard(tagged, stream)
            if not tagged:
                del members.tagged[tag]
    for tag in now:
        if tag not in before:
            _add(members.tagged.setdefault(tag, []), stream)


def _group_created(projections: Projections, event: ReaderGroupCreationStarted, _offset: int) -> None:
    _add(_members(projections, event.scope).groups, event.group)


def _group_deleted(projections: Projections, event: ReaderGroupDeleted, _offset: int) -> None:
    _remove(projections, _members(projections, event.scope), event.scope, ResourceKind.READER_GROUP, event.group)


def _table_created(projections: Projections, event: TableCreationStarted, _offset: int) -> None:
    _add(_members(projections, event.scope).tables, event.table)


def _table_deleted(projections: Projections, event: TableDeleted, _offset: int) -> None:
    _remove(projections, _members(projections, event.scope), event.scope, ResourceKind.TABLE, event.table)


def _remove(projections: Projections, members: Members, scope: str, kind: ResourceKind, name: str) -> None:
    _discard(members.names(kind), name)
    if members.is_empty():
        del projections[MEMBERS][scope]


def restore(projections: Projections, state: Any, offset: int) -> None:
    """List what a back-up knew; states of other kinds are in no list."""
    match state:
        case Scope():
            _add(_scopes(projections).names, state.name)
            if state.workflow is not None:
                # Its deletion goes on: the fences are raised to where it stands in this journal.
                _scopes(projections).deletions[state.name] = offset + 1
        case Stream():
            members = _members(projections, state.id.scope)
            _add(members.streams, state.id.name)
            _set_tags(members, state.id.name, state.config.tags)
        case ReaderGroup():
            _add(_members(projections, state.id.scope).groups, state.id.name)
        case Table():
            _add(_members(projections, state.id.scope).tables, state.id.name)


PROJECT: dict[type, Callable[[Projections, Any, int], None]] = {
    ScopeCreated: _scope_created,
    ScopeDeletionStarted: _scope_deletion_started,
    ScopeKept: _scope_kept,
    ScopeDeleted: _scope_deleted,
    StreamCreationStarted: _stream_created,
    StreamUpdateStarted: _stream_updated,
    StreamUpdated: _stream_updated,
    StreamDeleted: _stream_deleted,
    ReaderGroupCreationStarted: _group_created,
    ReaderGroupDeleted: _group_deleted,
    TableCreationStarted: _table_created,
    TableDeleted: _table_deleted,
}
"""What each event does to the projections; they are given the offset of its record, too."""
