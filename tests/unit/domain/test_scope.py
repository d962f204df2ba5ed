"""Scopes: every refusal, the deletion from its first record to its outcome, and what may be created meanwhile."""

import msgspec
import pytest
from support.domain_log import Log

from sluice.domain import listings
from sluice.domain.commands import Create
from sluice.domain.config import MAX_SEGMENTS, ReaderGroupConfig, ScalingPolicy, StreamConfig, TableConfig
from sluice.domain.decision import Context, Decision, Reply
from sluice.domain.errors import BusyError, ScopeBusyError, ViewBehindError
from sluice.domain.ids import GroupId, StreamId, TableId
from sluice.domain.names import scope_aggregate
from sluice.domain.reader_group.commands import CreateReaderGroup, DeleteReaderGroup
from sluice.domain.reader_group.decide import finish_create
from sluice.domain.reader_group.state import find_group
from sluice.domain.registry import cancel, decide
from sluice.domain.scope.commands import CreateScope, DeleteScope, DeleteScopeRecursive
from sluice.domain.scope.events import ScopeKept
from sluice.domain.scope.fences import Fence, fences_to_raise
from sluice.domain.scope.state import find_scope
from sluice.domain.scope_deletion import decide_delete_scope, finish_delete, finish_delete_recursive
from sluice.domain.status import Status
from sluice.domain.stream import decide as streams
from sluice.domain.stream.commands import CreateStream
from sluice.domain.table import decide as table
from sluice.domain.table.commands import CreateTable, DeleteTable
from sluice.domain.table.state import find_table
from sluice.domain.workflow import CancelWorkflow

CREATE = CreateStream("sc", "st", StreamConfig())
CREATE_TABLE = CreateTable("sc", "kv", TableConfig(1, 4))
CREATE_GROUP = CreateReaderGroup("sc", "g", ReaderGroupConfig(id="i", starts={}))
Deletion = DeleteScope | DeleteScopeRecursive
CREATIONS: list[Create] = [CREATE, CREATE_TABLE, CREATE_GROUP]


def with_table() -> Log:
    log = Log("sc")
    log.decide(CREATE_TABLE)
    log.apply(table.finish_create(log, TableId("sc", "kv")))
    return log


def raise_fences(log: Log, scope: str = "sc") -> None:
    for fence in fences_to_raise(log, scope):
        raise_fence(log, fence)


def raise_fence(log: Log, fence: Fence) -> Decision:
    return log.apply(fence.decide(log, Context(1)))


@pytest.mark.parametrize("name", ["", "_", "a_b", "__a", "a/b", "a b", "é", "a" * 256, "a\n", "#1"])
def test_scope_names_refused(name: str) -> None:
    assert Log().ask(CreateScope(name)).status == "INVALID_SCOPE_NAME"


@pytest.mark.parametrize("name", ["a", "_system", "A.b-9", "a" * 255])
def test_scope_names_accepted(name: str) -> None:
    log = Log()
    assert log.ask(CreateScope(name), "r").status == "SUCCESS"
    assert log.ask(CreateScope(name)).status == "SCOPE_EXISTS"
    found = find_scope(log, name)
    assert found is not None and found.creation_id == "r"


def test_names_in_scopes_refused() -> None:
    log = Log("sc")
    for name in ("", "my_stream", "a" * 256, "#1"):
        assert log.ask(CreateStream("sc", name, StreamConfig())).status == "INVALID_STREAM_NAME"
    for name in ("", "_x", "a" * 251):
        assert log.ask(CreateReaderGroup("sc", name, CREATE_GROUP.config)).status == "INVALID_RG_NAME"
        assert log.ask(CreateTable("sc", name, CREATE_TABLE.config)).status == "INVALID_TABLE_NAME"


def test_what_is_wrong_with_a_thing_counts_only_if_nothing_has_its_name() -> None:
    empty = CreateStream("sc", "st", StreamConfig(scaling=ScalingPolicy(min_segments=0)))
    wide = CreateTable("sc", "kv", TableConfig(MAX_SEGMENTS + 1, 4))
    log = with_table()
    assert Log().ask(empty).status == Log().ask(wide).status == "SCOPE_NOT_FOUND"
    assert log.ask(empty).status == Log("sc").ask(wide).status == "FAILURE"
    log.decide(CREATE)
    log.apply(streams.finish_create(log, StreamId("sc", "st")))
    assert log.ask(empty).status == "STREAM_EXISTS" and log.ask(wide).status == "TABLE_EXISTS"


def test_a_group_that_exists_is_the_reply_to_its_creation() -> None:
    log = Log("sc")
    log.decide(CREATE_GROUP, "r")
    with pytest.raises(BusyError):
        log.decide(CREATE_GROUP)
    log.apply(finish_create(log, Context(1), GroupId("sc", "g"), []))
    assert log.ask(CREATE_GROUP) == Reply(Status.SUCCESS)
    found = find_group(log, GroupId("sc", "g"))
    assert found is not None and found.creation_id == "r"


def test_a_scope_that_holds_something_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    log = with_table()
    log.decide(CREATE)
    log.decide(CreateStream("sc", "other", StreamConfig()))
    log.decide(CREATE_GROUP)
    assert log.ask(DeleteScope("sc")) == Reply(Status.SCOPE_NOT_EMPTY, "2 streams, 1 reader group, 1 table")
    monkeypatch.setattr(listings, "MAX_COUNTED", 1)
    assert log.ask(DeleteScope("sc")).reason == "more than 1 streams, 1 reader group, 1 table"
    assert find_scope(log, "sc") == find_scope(Log("sc"), "sc"), "there is no workflow"


def test_a_plain_deletion_looks_only_at_views_that_have_caught_up() -> None:
    with pytest.raises(ViewBehindError) as behind:
        decide_delete_scope(Log("sc"), DeleteScope("sc"), Context(1))
    assert behind.value.position is None


def test_an_empty_scope_goes_once_its_fences_are_raised() -> None:
    log = Log("sc")
    assert log.decide(DeleteScope("sc"), "r").reply is None
    assert finish_delete(log, "sc") == Decision()
    raise_fences(log)
    assert log.apply(finish_delete(log, "sc")).reply == Reply(Status.SUCCESS)
    assert find_scope(log, "sc") is None and log.ask(DeleteScope("sc")).status == "SCOPE_NOT_FOUND"
    assert log.ask(CreateScope("sc")).status == "SUCCESS"


def test_a_scope_into_which_something_has_come_is_kept() -> None:
    log = Log("sc")
    log.decide(CREATE_TABLE)
    log.fold(*streams.DECIDE[CreateStream](log, CREATE, Context(1, "r1")).events)
    without = Log("sc")
    started = without.decide(DeleteScope("sc"), "r")
    log.fold(*started.events)
    raise_fences(log)
    assert log.apply(finish_delete(log, "sc")).reply == Reply(Status.SCOPE_NOT_EMPTY, "1 stream, 1 table")
    found = find_scope(log, "sc")
    assert found is not None and found.workflow is None


def test_a_plain_deletion_can_be_cancelled_until_its_outcome() -> None:
    log = Log("sc")
    log.decide(DeleteScope("sc"), "r")
    scope = find_scope(log, "sc")
    assert scope is not None and scope.workflow is not None
    assert log.ask(CancelWorkflow(scope_aggregate("sc"), scope.workflow.id)) == Reply(Status.SUCCESS)
    assert scope.workflow.cancelled
    kept = log.apply(cancel(log, Context(1), scope))
    assert kept.reply == Reply(Status.FAILURE, "cancelled") and kept.events == (ScopeKept(scope="sc"),)
    found = find_scope(log, "sc")
    assert found is not None and found.workflow is None
    assert log.ask(CancelWorkflow(scope_aggregate("sc"), "x")).status == "NOT_RUNNING"


def test_a_recursive_deletion_ends_when_nothing_is_left_and_cannot_be_cancelled() -> None:
    log = with_table()
    assert log.decide(DeleteScopeRecursive("sc"), "r").reply is None
    assert log.ask(CancelWorkflow(scope_aggregate("sc"), "delete-scope-recursive-r")).status == "TOO_LATE"
    raise_fences(log)
    assert finish_delete_recursive(log, "sc") == Decision()
    log.decide(DeleteTable("sc", "kv"))
    log.apply(table.finish_delete(log, TableId("sc", "kv")))
    assert log.apply(finish_delete_recursive(log, "sc")).reply == Reply(Status.SUCCESS)
    assert log.ask(DeleteScopeRecursive("sc")) == Reply(Status.SUCCESS)


@pytest.mark.parametrize("command", [CreateScope("sc"), DeleteScope("sc"), DeleteScopeRecursive("sc")])
def test_a_request_on_a_scope_waits_for_its_deletion(command: CreateScope) -> None:
    log = with_table()
    log.decide(DeleteScopeRecursive("sc"))
    with pytest.raises(BusyError):
        log.decide(command)


@pytest.mark.parametrize("create", CREATIONS)
def test_a_creation_waits_for_a_plain_deletion(create: Create) -> None:
    log = Log("sc")
    log.decide(DeleteScope("sc"))
    with pytest.raises(ScopeBusyError):
        log.decide(create)


@pytest.mark.parametrize("create", CREATIONS)
def test_a_creation_is_refused_in_a_scope_that_goes_with_everything(create: Create) -> None:
    log = with_table()
    log.decide(DeleteScopeRecursive("sc"))
    assert log.ask(create).status == "SCOPE_NOT_FOUND"


@pytest.mark.parametrize("create", CREATIONS)
def test_a_missing_scope_is_refused_only_by_views_that_have_caught_up(create: Create) -> None:
    with pytest.raises(ViewBehindError) as behind:
        decide(Log(), create, Context(1))
    assert behind.value.position is None
    assert Log().ask(create).status == "SCOPE_NOT_FOUND"


@pytest.mark.parametrize("create", CREATIONS)
def test_a_creation_waits_until_the_view_is_where_the_fences_are(create: Create) -> None:
    log = Log("sc")
    raise_fence(log, Fence(log.partition_key, log.partition_key, 10))
    with pytest.raises(ViewBehindError) as behind:
        log.decide(create)
    assert behind.value.position == 10
    while log.view.next_offset < 10:
        log.fold()
    assert log.decide(create).events


def test_fences_only_rise() -> None:
    log = Log()
    assert raise_fence(log, Fence("#0", "#1", 5)).events
    assert raise_fence(log, Fence("#0", "#1", 5)) == raise_fence(log, Fence("#0", "#1", 4)) == Decision()
    assert raise_fence(log, Fence("#0", "#2", 4)).events and raise_fence(log, Fence("#0", "#1", 6)).events


def test_every_attempt_raises_the_fences_to_the_same_position() -> None:
    log = Log("sc")
    log.decide(DeleteScope("sc"))
    fences = fences_to_raise(log, "sc")
    log.fold()
    assert fences_to_raise(log, "sc") == fences
    assert [fence.position for fence in fences] == [2]


@pytest.mark.parametrize("command", [DeleteScope("sc"), DeleteScopeRecursive("sc")])
def test_a_deletion_of_an_earlier_scope_of_that_name_spares_the_present_one(command: Deletion) -> None:
    log, earlier = with_table(), msgspec.structs.replace(command, creation_id="another")
    assert log.ask(earlier) == Log().ask(earlier) == Reply(Status.SUCCESS)
    log.decide(DeleteScopeRecursive("sc"), "r")
    assert log.ask(earlier) == Reply(Status.SUCCESS), "it does not wait for the deletion of another one"
    assert find_scope(log, "sc") is not None
    present = msgspec.structs.replace(command, creation_id="scope-sc")
    assert Log("sc").decide(present).events == Log("sc").decide(command).events != ()


def test_a_deletion_of_an_earlier_thing_of_that_name_spares_the_present_one() -> None:
    log = with_table()
    log.decide(CREATE_GROUP)
    table, group = DeleteTable("sc", "kv", "another"), DeleteReaderGroup("sc", "g", creation_id="another")
    for of_names in (log, Log("sc")):
        assert of_names.ask(table) == of_names.ask(group) == Reply(Status.SUCCESS)
    assert find_group(log, GroupId("sc", "g")) is not None and find_table(log, TableId("sc", "kv")) is not None
    assert Log("sc").ask(DeleteTable("sc", "kv")).status == "TABLE_NOT_FOUND"
    assert Log("sc").ask(DeleteReaderGroup("sc", "g")).status == "RG_NOT_FOUND"
