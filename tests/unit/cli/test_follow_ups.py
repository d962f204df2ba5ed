"""Which request an id belongs to."""

import pytest

from sluice.domain.workflow import WorkflowKind
from sluice_cli.records.follow_ups import depth_below

ASKED = "8c1d54a0e7-1a"
SEAL = f"delete-scope-recursive-{ASKED}-0b2d9f03a6-12"


@pytest.mark.parametrize(
    ("id", "depth"),
    [
        (ASKED, 0),
        (f"{ASKED}~", 0),
        (SEAL, 1),
        (f"{SEAL}~", 1),
        (f"seal-stream-{SEAL}-4567abcdef-3", 2),
        (f"{ASKED}b", None),
        (f"delete-scope-recursive-{ASKED}b-0b2d9f03a6-1", None),
        (f"delete-scope-recursive-{ASKED}", None),
        ("scale-stream-1767603640000-0b2d9f03a6-1", None),
        ("", None),
    ],
)
def test_an_id_says_how_far_below_a_request_it_was_sent(id: str, depth: int | None) -> None:
    assert depth_below(id, ASKED) == depth


@pytest.mark.parametrize("kind", WorkflowKind)
def test_a_workflow_of_any_kind_names_its_request(kind: WorkflowKind) -> None:
    assert depth_below(f"{kind.value}-{ASKED}-0b2d9f03a6-1", ASKED) == 1


def test_a_replay_has_nothing_of_what_the_original_sent() -> None:
    assert depth_below(ASKED, f"{ASKED}~") is None
    assert depth_below(SEAL, f"{ASKED}~") is None
