"""What the page knows of workflows without asking is what the services do."""

import re
from pathlib import Path
from typing import Any

import api_gateway
from sluice.domain.workflow import WorkflowKind
from sluice.engine.step import Step
from stream_workflows.workflows import WORKFLOWS
from txn_manager.commit_steps import workflows

STEPS = Path(api_gateway.__file__).parent / "console" / "page" / "parts" / "steps.js"


def test_the_steps_that_the_page_draws_are_those_of_the_services() -> None:
    carried_out: dict[WorkflowKind, tuple[Step[Any], ...]] = {**WORKFLOWS, **workflows(1)}
    several = {kind.value: [step.name for step in steps] for kind, steps in carried_out.items() if len(steps) > 1}
    drawn = dict(re.findall(r"^  '([a-z-]+)': \[(.*)\],$", STEPS.read_text(), re.MULTILINE))
    assert {kind: re.findall(r"'([a-z-]+)'", steps) for kind, steps in drawn.items()} == several
