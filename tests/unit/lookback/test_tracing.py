"""Which request an id belongs to."""

import pytest

from sluice.domain.workflow import WorkflowKind
from sluice.lookback.tracing import depth_below

REQUEST = "8c1d54a0e7-1a"
SEAL = f"delete-scope-recursive-{REQUEST}-0b2d9f03a6-12"


@pytest.mark.parametrize(
    ("id", "depth"),
    [
        (REQUEST, 0),
        (SEAL, 1),
        (f"seal-stream-{SEAL}-4567abcdef-3", 2),
        (f"{REQUEST}b", None),
        (f"delete-scope-recursive-{REQUEST}b-0b2d9f03a6-1", None),
        (f"delete-scope-recursive-{REQUEST}", None),
        ("scale-stream-1767603640000-0b2d9f03a6-1", None),
        ("", None),
    ],
)
def test_an_id_says_how_far_below_a_request_it_was_sent(id: str, depth: int | None) -> None:
    assert depth_below(id, REQUEST) == depth


@pytest.mark.parametrize("kind", WorkflowKind)
def test_a_workflow_of_any_kind_names_its_request(kind: WorkflowKind) -> None:
    assert depth_below(f"{kind.value}-{REQUEST}-0b2d9f03a6-1", REQUEST) == 1
