"""The fold rule: what counts, what is void, and that all followers of one log agree.

The property test lets competing proposers act on views of different ages, as frozen or slow processes do.
"""

import itertools
from dataclasses import dataclass, field

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.domain import events as ev
from sluice.domain.aggregates import DECIDE, evolve
from sluice.domain.commands import Command, CreateScope, CreateStream, DeleteScope, NameKind, ReleaseName
from sluice.domain.config import StreamConfig
from sluice.domain.decision import Context, Reply
from sluice.journal.partition_view import ANSWERS_KEPT, ANSWERS_KEPT_MS, GuardedReader, Outcome, PartitionView
from sluice.journal.record import Record, decode_record, encode_record


def created(scope: str = "sc", version: int = 0, request: str | None = None, id: str = "1") -> Record:
    reply = Reply("SUCCESS") if request else None
    event = ev.ScopeCreated(scope=scope, at=1)
    return Record(
        id=id, at=1, by="t", expect={f"scope:{scope}": version}, request=request, events=(event,), reply=reply
    )


def deleted(scope: str = "sc", version: int = 1) -> Record:
    return Record(id="2", at=2, by="t", expect={f"scope:{scope}": version}, events=(ev.ScopeDeleted(scope=scope),))


def snapshot(view: PartitionView) -> bytes:
    states = {name: (view.version(name), repr(state)) for name, state in view.aggregates()}
    return msgspec.json.encode(states, order="deterministic")


def test_a_record_counts_on_the_version_it_expects() -> None:
    view = PartitionView(evolve)
    assert view.fold(created(), 0, 0) is Outcome.COUNTED
    assert view.version("scope:sc") == 1
    before = snapshot(view)
    assert view.fold(created(), 1, 0) is Outcome.STALE
    assert snapshot(view) == before and view.next_offset == 2


def test_versions_survive_deletion() -> None:
    view = PartitionView(evolve)
    view.fold(created(), 0, 0)
    assert view.fold(deleted(), 1, 0) is Outcome.COUNTED
    assert view.get("scope:sc") is None and view.version("scope:sc") == 2
    assert view.fold(created(), 2, 0) is Outcome.STALE
    assert view.fold(created(version=2), 3, 0) is Outcome.COUNTED


def test_a_guard_is_checked_but_not_touched() -> None:
    view = PartitionView(evolve)
    view.fold(created("a"), 0, 0)
    guarded = Record(
        id="3", at=1, by="t", expect={"scope:a": 1, "scope:b": 0}, events=(ev.ScopeCreated(scope="b", at=1),)
    )
    assert view.fold(guarded, 1, 0) is Outcome.COUNTED
    assert (view.version("scope:a"), view.version("scope:b")) == (1, 1)
    late = Record(id="4", at=1, by="t", expect={"scope:a": 0, "scope:c": 0}, events=(ev.ScopeCreated(scope="c", at=1),))
    assert view.fold(late, 2, 0) is Outcome.STALE and view.get("scope:c") is None


def test_a_request_is_answered_once() -> None:
    view = PartitionView(evolve)
    assert view.fold(created(request="r"), 0, 0) is Outcome.COUNTED
    second = Record(id="9", at=1, by="t", expect={"scope:x": 0}, request="r", reply=Reply("FAILURE"))
    assert view.fold(second, 1, 0) is Outcome.ANSWERED
    answer = view.answer("r")
    assert answer is not None and answer.status == "SUCCESS"


def test_answers_are_forgotten_by_age_and_by_number() -> None:
    view = PartitionView(evolve)
    refusal = Record(id="1", at=1, by="t", expect={}, request="old", reply=Reply("FAILURE"))
    view.fold(refusal, 0, 0)
    view.fold(msgspec.structs.replace(refusal, request="new"), 1, ANSWERS_KEPT_MS + 1)
    assert view.answer("old") is None and view.answer("new") is not None
    for i in range(ANSWERS_KEPT):
        view.fold(msgspec.structs.replace(refusal, request=f"r{i}"), 2 + i, ANSWERS_KEPT_MS + 1)
    assert view.answer("new") is None and view.answer("r0") is not None


def test_records_read_back_as_written() -> None:
    command = CreateStream("sc", "st", StreamConfig(tags=("a",)))
    event = ev.NameReserved(scope="sc", create=command, incarnation="r", at=7)
    record = Record(id="1", at=1, by="t/0", expect={"scope:sc": 3}, request="r", events=(event,), reply=Reply("X", "y"))
    assert decode_record(encode_record(record)) == record


@dataclass
class Proposer:
    """Decides on a view that is as old as it likes, and remembers what it was told."""

    view: PartitionView = field(default_factory=lambda: PartitionView(evolve))

    def catch_up(self, log: list[Record], upto: int) -> None:
        for offset in range(self.view.next_offset, upto):
            self.view.fold(log[offset], offset, offset)

    def propose(self, command: Command, request: str, id: str) -> Record | None:
        if self.view.answer(request) is not None:
            return None
        reader = GuardedReader(self.view)
        decision = DECIDE[type(command)](reader, command, Context(1, request))
        for event in decision.events:
            reader.get(event.aggregate)
        if not decision.events and decision.reply is None:
            return None
        return Record(
            id=id, at=1, by="t", expect=reader.seen, request=request, events=decision.events, reply=decision.reply
        )


names = st.sampled_from(["a", "b"])
commands = st.one_of(
    names.map(CreateScope),
    names.map(DeleteScope),
    st.builds(CreateStream, names, names, st.just(StreamConfig())),
    st.builds(ReleaseName, names, st.just(NameKind.STREAM), names, st.integers(0, 9).map("r{}".format)),
)
acts = st.tuples(st.integers(0, 2), commands, st.integers(0, 9).map("r{}".format), st.integers(0, 100))


@settings(max_examples=300, deadline=None)
@given(st.lists(acts, max_size=40))
def test_all_followers_agree_whatever_stale_proposers_append(script: list[tuple[int, Command, str, int]]) -> None:
    log: list[Record] = []
    proposers = [Proposer() for _ in range(3)]
    replies: dict[str, list[Reply]] = {}
    first = PartitionView(evolve)
    ids = itertools.count()
    for who, command, request, lag in script:
        proposer = proposers[who]
        proposer.catch_up(log, max(proposer.view.next_offset, len(log) - lag % 7))
        record = proposer.propose(command, request, str(next(ids)))
        if record is None:
            continue
        log.append(decode_record(encode_record(record)))
        before = snapshot(first)
        outcome = first.fold(log[-1], len(log) - 1, len(log))
        if outcome is Outcome.COUNTED:
            if record.reply is not None:
                replies.setdefault(request, []).append(record.reply)
        else:
            assert snapshot(first) == before
    assert all(len(given_) == 1 for given_ in replies.values())
    for proposer in proposers:
        proposer.catch_up(log, len(log))
        assert snapshot(proposer.view) == snapshot(first)


def test_scopes_are_those_that_exist() -> None:
    view = PartitionView(evolve)
    facts: tuple[ev.Event, ...] = (
        ev.ScopeCreated("a", at=1),
        ev.ScopeCreated("b", at=1),
        ev.ScopeDeleted("a"),
        ev.ScopeCreated("c", at=1),
    )
    for offset, fact in enumerate(facts):
        view.fold(Record(id=str(offset), at=0, by="t", expect={}, events=(fact,)), offset, 0)
    assert [scope.name for scope in view.scopes()] == ["b", "c"]
    view.fold(Record(id="again", at=0, by="t", expect={}, events=(ev.ScopeCreated("a", at=2),)), 4, 0)
    assert [scope.name for scope in view.scopes()] == ["a", "b", "c"]
