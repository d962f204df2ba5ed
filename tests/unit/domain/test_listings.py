"""The projections that lists are answered from: they show what the aggregates are, whatever happens."""

from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.domain.config import ReaderGroupConfig, StreamConfig, TableConfig
from sluice.domain.events import Event
from sluice.domain.ids import ResourceKind
from sluice.domain.listings import MEMBERS, Members, in_words, is_empty, members_of
from sluice.domain.reader_group.events import ReaderGroupCreationStarted, ReaderGroupDeleted
from sluice.domain.registry import project
from sluice.domain.scope.events import ScopeCreated, ScopeDeleted, ScopeDeletionStarted, ScopeKept
from sluice.domain.scope.index import scopes_of
from sluice.domain.segment import Segment
from sluice.domain.stream.events import StreamCreationStarted, StreamDeleted, StreamUpdated, StreamUpdateStarted
from sluice.domain.table.events import TableCreationStarted, TableDeleted

SEGMENTS = (Segment(0, 0.0, 1.0),)
names = st.sampled_from(["a", "b", "_MARKa", "_RGa", "Z"])
tags = st.sets(st.sampled_from(["x", "y"])).map(tuple)
acts = st.tuples(st.sampled_from(["create", "update", "delete"]), st.sampled_from(["sc", "other"]), names, tags)


class Shown:
    """The projections of one partition."""

    def __init__(self) -> None:
        self.projections: dict[str, object] = {}
        self.offset = 0

    def projection(self, name: str) -> object:
        return self.projections.get(name)

    def fold(self, *events: Event) -> None:
        for event in events:
            assert list(project(self.projections, event, None, self.offset)) == []
        self.offset += 1

    def members(self, scope: str = "sc") -> Members:
        return members_of(self, scope)


def created(name: str, tags: tuple[str, ...] = (), scope: str = "sc") -> StreamCreationStarted:
    return StreamCreationStarted(scope, name, "r", config=StreamConfig(tags=tags), created_at=1, segments=SEGMENTS)


def group(name: str) -> ReaderGroupCreationStarted:
    return ReaderGroupCreationStarted("sc", name, "r", config=ReaderGroupConfig(id="i", starts={}), created_at=1)


def table(name: str) -> TableCreationStarted:
    return TableCreationStarted("sc", name, "r", config=TableConfig(1, 4), created_at=1, segments=SEGMENTS)


@settings(max_examples=200, deadline=None)
@given(st.lists(acts, max_size=40))
def test_streams_and_tags_are_as_the_events_leave_them(script: list[tuple[str, str, str, tuple[str, ...]]]) -> None:
    shown, model = Shown(), dict[tuple[str, str], tuple[str, ...]]()
    for what, scope, name, tags in script:
        is_there = (scope, name) in model
        if what == "create" and not is_there:
            shown.fold(created(name, tags, scope))
        elif what == "update" and is_there:
            shown.fold(StreamUpdated(scope=scope, stream=name, config=StreamConfig(tags=tags)))
        elif what == "delete" and is_there:
            shown.fold(StreamDeleted(scope=scope, stream=name, next_number=1))
            del model[scope, name]
            continue
        else:
            continue
        model[scope, name] = tags
    for scope in ("sc", "other"):
        members, here = shown.members(scope), sorted(name for held, name in model if held == scope)
        assert list(members.after(ResourceKind.STREAM, "")) == here
        assert list(members.after(ResourceKind.STREAM, "_RGa")) == [name for name in here if name > "_RGa"]
        plain = [name for name in here if not name.startswith("_")]
        assert members.internal_streams == len(here) - len(plain)
        for after in ("", "Z", "_MARKa", "a"):
            found = members.after(ResourceKind.STREAM, after, internal=False)
            assert list(found) == [name for name in plain if name > after]
        for tag in ("x", "y"):
            tagged = [name for name in here if tag in model[scope, name]]
            assert list(members.tagged_after(tag, "")) == tagged
            assert list(members.tagged_after(tag, "", internal=False)) == [n for n in tagged if n in plain]
        assert is_empty([shown], scope) is (not here)
    held = shown.projections.get(MEMBERS, {})
    assert isinstance(held, dict) and held.keys() == {scope for scope, _ in model}, "nothing is left of the others"


def test_an_update_that_has_begun_counts_at_once() -> None:
    shown = Shown()
    shown.fold(created("a", ("x",)))
    shown.fold(StreamUpdateStarted(scope="sc", stream="a", config=StreamConfig(tags=("y",))))
    shown.fold(StreamUpdated(scope="sc", stream="a"))
    assert list(shown.members().tagged_after("y", "")) == ["a"] and list(shown.members().tagged_after("x", "")) == []


def test_what_goes_along_with_something_else_is_not_counted() -> None:
    first, second = Shown(), Shown()
    first.fold(created("a"), created("_MARKa"), group("g"), created("_RGg"), created("_MARK_RGg"))
    second.fold(created("b"), created("_MARKb"), created("_RGalone"), created("_MARKalone"), table("t"))
    assert in_words([first, second], "sc") == "4 streams, 1 reader group, 1 table"
    assert list(first.members().resources(ResourceKind.STREAM)) == ["a"]
    assert list(second.members().resources(ResourceKind.STREAM)) == ["_MARKalone", "_RGalone", "b"]
    second.fold(TableDeleted(scope="sc", table="t", next_number=1))
    first.fold(ReaderGroupDeleted(scope="sc", group="g"), StreamDeleted(scope="sc", stream="_RGg", next_number=1))
    assert in_words([first], "sc") == "2 streams", "its mark stream is left alone"
    assert in_words([first], "other") == ""


def test_scopes_are_those_that_exist_with_the_positions_of_their_deletions() -> None:
    shown = Shown()
    shown.fold(*(ScopeCreated(scope, "c", at=1) for scope in "cab"))
    shown.fold(ScopeDeletionStarted("a"), ScopeDeletionStarted("b"))
    assert list(scopes_of(shown).after("a")) == ["b", "c"] and scopes_of(shown).deletions == {"a": 2, "b": 2}
    shown.fold(ScopeDeleted("a"), ScopeKept("b"))
    assert list(scopes_of(shown).after("")) == ["b", "c"] and scopes_of(shown).deletions == {}


def test_a_tag_that_is_given_twice_is_one() -> None:
    shown = Shown()
    shown.fold(created("a", ("x", "x")))
    assert shown.members().tagged == {"x": ["a"]}
    shown.fold(StreamDeleted(scope="sc", stream="a", next_number=1))
    assert shown.members().tagged == {}
