"""The command that ends what runs: it names the workflow that a view shows."""

from sluice.domain.workflow import CancelWorkflow, running
from sluice.engine.fold import PartitionView


def cancellation(view: PartitionView, aggregate: str) -> CancelWorkflow:
    """Of no workflow, if none runs there."""
    workflow = running(view.get(aggregate))
    return CancelWorkflow(aggregate, workflow.id if workflow is not None else "none")
