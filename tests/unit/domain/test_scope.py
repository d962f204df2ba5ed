"""The scope aggregate: every refusal, and the life of a name from reservation to release."""

import pytest
from support.domain_log import Log

from sluice.domain.aggregates import decide
from sluice.domain.commands import (
    CreateReserved,
    CreateScope,
    CreateStream,
    CreateTable,
    DeleteScope,
    DeleteScopeRecursive,
    JoinCreation,
    NameKind,
    ReleaseName,
    ResumeCreation,
)
from sluice.domain.config import MAX_SEGMENTS, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.decision import Context, Decision, Reply
from sluice.domain.names import mark_stream
from sluice.domain.scope import Scope, finish_delete_recursive

CONFIG = StreamConfig()
CREATE = CreateStream("sc", "st", CONFIG)


def with_scope() -> Log:
    log = Log()
    assert log.ask(CreateScope("sc")).status == "SUCCESS"
    return log


@pytest.mark.parametrize("name", ["", "_", "a_b", "__a", "a/b", "a b", "é", "a" * 256, "a\n"])
def test_scope_names_refused(name: str) -> None:
    assert Log().ask(CreateScope(name)).status == "INVALID_SCOPE_NAME"


@pytest.mark.parametrize("name", ["a", "_system", "A.b-9", "a" * 255])
def test_scope_names_accepted(name: str) -> None:
    log = Log()
    assert log.ask(CreateScope(name)).status == "SUCCESS"
    assert log.ask(CreateScope(name)).status == "SCOPE_EXISTS"


def test_scope_is_deleted_only_when_empty_and_can_come_again() -> None:
    log = with_scope()
    log.decide(CreateStream("sc", "st", CONFIG), request="r1")
    assert log.ask(DeleteScope("sc")).status == "SCOPE_NOT_EMPTY"
    log.decide(ReleaseName("sc", NameKind.STREAM, "st", "r1"))
    assert log.ask(DeleteScope("sc")).status == "SUCCESS"
    assert log.ask(DeleteScope("sc")).status == "SCOPE_NOT_FOUND"
    assert log.ask(CreateScope("sc")).status == "SUCCESS"


@pytest.mark.parametrize("name", ["", "my_stream", "a" * 256])
def test_stream_names_refused(name: str) -> None:
    assert with_scope().ask(CreateStream("sc", name, CONFIG)).status == "INVALID_STREAM_NAME"


def test_stream_needs_a_scope_and_a_segment() -> None:
    assert Log().ask(CreateStream("sc", "st", CONFIG)).status == "SCOPE_NOT_FOUND"
    empty = StreamConfig(scaling=ScalingPolicy(min_segments=0))
    reply = with_scope().ask(CreateStream("sc", "st", empty))
    assert (reply.status, "segment" in reply.reason) == ("FAILURE", True)


def test_what_is_wrong_with_a_thing_counts_only_if_nothing_has_its_name() -> None:
    empty = CreateStream("sc", "st", StreamConfig(scaling=ScalingPolicy(min_segments=0)))
    wide = CreateTable("sc", "kv", TableConfig(MAX_SEGMENTS + 1, 4))
    log = with_scope()
    for wrong, right in ((empty, CreateStream("sc", "st", CONFIG)), (wide, CreateTable("sc", "kv", TableConfig(1, 4)))):
        assert Log().ask(wrong).status == "SCOPE_NOT_FOUND"
        assert log.ask(wrong).status == "FAILURE"
        log.decide(right)
        assert log.decide(wrong).sends == (JoinCreation(wrong),)


def test_reservation_holds_both_names_and_is_passed_on_again() -> None:
    log = with_scope()
    decision = log.decide(CreateStream("sc", "st", CONFIG), request="r1", now=5)
    wanted = CreateReserved(CreateStream("sc", "st", CONFIG), "r1", 5)
    assert decision.sends == (wanted,) and decision.reply is None
    scope = log.get("scope:sc")
    assert isinstance(scope, Scope) and set(scope.streams) == {"st", "_MARKst"}
    assert list(scope.reserved()) == [wanted]
    assert log.decide(CreateStream("sc", "st", CONFIG), request="r1", now=9).sends == (wanted,)


def test_a_held_name_is_joined_not_reserved_again() -> None:
    log = with_scope()
    log.decide(CreateStream("sc", "st", CONFIG), request="r1")
    decision = log.decide(CreateStream("sc", "st", CONFIG), request="r2")
    assert decision.events == () and decision.sends == (JoinCreation(CreateStream("sc", "st", CONFIG)),)


def test_what_was_reserved_before_the_scope_is_deleted_is_still_passed_on() -> None:
    """Only then can the deletion find it; and the scope would hold the name for ever otherwise."""
    log = with_scope()
    wanted = log.decide(CreateStream("sc", "st", CONFIG), request="r1").sends
    log.decide(DeleteScopeRecursive("sc"))
    assert log.decide(CreateStream("sc", "st", CONFIG), request="r1").sends == wanted
    assert log.ask(CreateStream("sc", "other", CONFIG)).status == "SCOPE_NOT_FOUND"


@pytest.mark.parametrize("create", [CREATE, ResumeCreation(CREATE), ResumeCreation(CREATE, again=True)])
def test_an_old_creation_that_comes_again_is_answered_and_creates_nothing(
    create: CreateStream | ResumeCreation,
) -> None:
    was_again = isinstance(create, ResumeCreation) and create.again
    decision = decide(with_scope(), create, Context(now=1, request="r1", again=not was_again))
    assert decision.reply is not None and decision.reply.status == "FAILURE"
    assert "come again" in decision.reply.reason and not decision.events and not decision.sends


def test_an_old_creation_that_comes_again_waits_for_what_has_its_name_now() -> None:
    """It may have waited for that before; it is answered there, and reserves nothing if that is gone."""
    log = with_scope()
    log.decide(CREATE, request="r2")
    joins = JoinCreation(CREATE, again=True)
    assert decide(log, CREATE, Context(now=1, request="r1", again=True)) == Decision(sends=(joins,))


def test_a_creation_that_comes_back_reserves_the_name_if_it_is_free() -> None:
    log = with_scope()
    assert log.decide(ResumeCreation(CREATE), request="r1", now=5).sends == (CreateReserved(CREATE, "r1", 5),)
    assert log.decide(ResumeCreation(CREATE, again=True), request="r1").sends == (CreateReserved(CREATE, "r1", 5),)
    assert Log().ask(ResumeCreation(CREATE)).status == "SCOPE_NOT_FOUND"
    wrong = CreateStream("sc", "other", StreamConfig(scaling=ScalingPolicy(min_segments=0)))
    assert log.ask(ResumeCreation(wrong)).status == "FAILURE"


def test_a_name_that_is_held_though_nothing_is_there_is_passed_on_once_more_and_then_people_are_told() -> None:
    log = with_scope()
    log.decide(CREATE, request="r1", now=5)
    sent = log.decide(ResumeCreation(CREATE), request="r2").sends
    assert sent == (CreateReserved(CREATE, "r1", 5), JoinCreation(CREATE, held="r1"))
    refused = log.decide(ResumeCreation(CREATE, held="r1"), request="r2").reply
    assert refused is not None and refused.status == "FAILURE" and "held by request r1" in refused.reason
    log.decide(ReleaseName("sc", NameKind.STREAM, "st", "r1"))
    log.decide(CREATE, request="r3", now=9)
    sent = log.decide(ResumeCreation(CREATE, again=True, held="r1"), request="r2").sends
    assert sent == (CreateReserved(CREATE, "r3", 9), JoinCreation(CREATE, again=True, held="r3"))


def test_a_name_that_came_with_another_is_waited_for_and_not_passed_on() -> None:
    log = with_scope()
    log.decide(CREATE, request="r1")
    mark = CreateStream("sc", mark_stream("st"), CONFIG)
    sent = log.decide(ResumeCreation(mark), request="r2").sends
    assert sent == (JoinCreation(mark, held="r1"),)


def test_release_of_an_older_incarnation_does_nothing() -> None:
    log = with_scope()
    log.decide(CreateStream("sc", "st", CONFIG), request="r2")
    assert log.decide(ReleaseName("sc", NameKind.STREAM, "st", "r1")).events == ()
    assert log.decide(ReleaseName("sc", NameKind.STREAM, "st", "r2")).events != ()
    assert log.decide(ReleaseName("sc", NameKind.STREAM, "st", "r2")).events == ()


def test_the_request_that_began_a_recursive_deletion_is_answered_only_at_its_end() -> None:
    """It comes again when a process dies before it was accepted; an answer then would void the last record."""
    log = with_scope()
    assert log.decide(DeleteScopeRecursive("sc"), "first").reply is None
    assert log.decide(DeleteScopeRecursive("sc"), "first") == Decision()
    assert log.decide(DeleteScopeRecursive("sc"), "second").reply == Reply("SUCCESS")


def test_a_scope_that_is_being_emptied_is_left_to_that() -> None:
    """Its last things give their names back before they go; who asked for all of it is answered when they are gone."""
    log = with_scope()
    log.decide(CreateStream("sc", "st", CONFIG), request="r1")
    log.decide(DeleteScopeRecursive("sc"), "first")
    log.decide(ReleaseName("sc", NameKind.STREAM, "st", "r1"))
    refused = log.ask(DeleteScope("sc"))
    assert refused.status == "SCOPE_NOT_EMPTY" and "being deleted" in refused.reason
    assert log.apply(finish_delete_recursive(log, "sc")).reply == Reply("SUCCESS")
