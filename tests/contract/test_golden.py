"""Golden journals and requests: every release understands what the releases before it wrote, and comes to the same."""

from functools import cache

import pytest
from golden.__main__ import version_made
from golden.journals import Folded, Golden, all_golden, snapshot_in, without_outcomes
from golden.requests import all_golden_requests
from msgspec import inspect, json

from sluice.catalog.schemas import COMMANDS
from sluice.domain.model import JournalRecord
from sluice.domain.workflow import WorkflowKind
from sluice.engine.fold import Outcome
from sluice.engine.snapshots import FORMAT, READABLE
from sluice.kafka.requests import decode_request, encode_request

AGAIN = "see docs/releasing.md; for the version that is being made: make golden"


@cache
def folded(golden: Golden) -> Folded:
    return Folded(golden.lines())


def id_of(golden: Golden) -> str:
    return f"{golden.version}-{golden.name}"


@pytest.mark.parametrize("golden", all_golden(), ids=id_of)
def test_a_golden_journal_comes_to_what_it_came_to_when_it_was_written(golden: Golden) -> None:
    assert folded(golden).result() == golden.result.read_text(), f"{golden.result}: {AGAIN}"


@pytest.mark.parametrize("golden", [g for g in all_golden() if g.snapshot.exists()], ids=id_of)
def test_a_golden_snapshot_comes_to_what_its_journal_comes_to(golden: Golden) -> None:
    snapshot = snapshot_in(golden.snapshot)
    assert snapshot.format in READABLE, f"{golden.snapshot} is read by no release that may come behind it: remove it"
    assert snapshot.result() == without_outcomes(golden.result.read_text()), AGAIN
    assert folded(golden).snapshot() == snapshot or snapshot.format != FORMAT, "captured otherwise: a new format"


def test_the_version_that_is_being_made_has_golden_journals_and_snapshots() -> None:
    made = [golden for golden in all_golden() if golden.version == version_made()]
    assert made and all(golden.snapshot.exists() for golden in made), AGAIN


def test_golden_journals_have_every_event_every_field_and_every_workflow() -> None:
    made = [folded(golden) for golden in all_golden() if golden.version == version_made()]
    unset = fields_of_records() - set().union(*(each.fields for each in made))
    assert unset == {("Record", "format")}, f"there is one format, which is written nowhere; {AGAIN}"
    assert set().union(*(each.workflows for each in made)) == set(WorkflowKind), AGAIN


def fields_of_records() -> set[tuple[str, str]]:
    """All that a record of the journal may have in it, in the form of `Folded.fields`."""
    found: set[tuple[str, str]] = set()

    def look(type: inspect.Type) -> None:
        match type:
            case inspect.StructType(cls, fields) if (cls.__name__, "") not in found:
                found.update((cls.__name__, name) for name in ("", *(field.name for field in fields)))
                for field in fields:
                    look(field.type)
            case inspect.UnionType(types):
                for each in types:
                    look(each)
            case inspect.TupleType(item_types):
                for each in item_types:
                    look(each)
            case inspect.DictType(value_type=inner) | inspect.VarTupleType(inner) | inspect.ListType(inner):
                look(inner)

    look(inspect.type_info(JournalRecord))
    return found


def test_golden_journals_have_entries_of_every_outcome() -> None:
    assert set().union(*(folded(golden).kinds_of_outcomes for golden in all_golden())) == set(Outcome)


def test_golden_journals_have_markers_at_which_this_fold_agrees_with_the_writers() -> None:
    markers = [(id_of(golden), each) for golden in all_golden() for each in folded(golden).markers]
    assert [(name, each.difference) for name, each in markers if each.difference is not None] == []
    assert any(each.agreed >= 0 for _, each in markers), AGAIN


@pytest.mark.parametrize("version", all_golden_requests())
def test_golden_requests_say_to_this_release_all_that_they_were_written_to_say(version: str) -> None:
    values = all_golden_requests()[version]
    read = [encode_request(decode_request(value)) for value in values]
    assert [json.decode(each) for each in read] == [json.decode(each) for each in values]


def test_the_version_that_is_being_made_has_a_golden_request_of_every_command() -> None:
    made = all_golden_requests()[version_made()]
    assert {type(decode_request(value).command) for value in made} == set(COMMANDS), AGAIN
