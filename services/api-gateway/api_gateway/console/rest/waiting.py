"""What keeps workflows, for operators: other work, whose own reason follows in turn, or a segment container.

Built from the views; belongs to one answer.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from api_gateway.edge.containers import Containers
from api_gateway.edge.reads import Reads
from sluice.domain.decision import Reader
from sluice.domain.scope.state import Scope
from sluice.domain.workflow import running
from sluice.insight.progress import Progress, progress_of
from sluice.insight.waits import segments_at_work, waits_for
from sluice.insight.workflows import Wait
from sluice.outages import in_words
from sluice.pravega.routing import container_of

MAX_CHAIN = 5
MAX_SEGMENTS_SEEN = 200
"""Of how many segments of one workflow the containers are looked at."""


class Waits:
    """`busy` are the aggregates that are under way."""

    def __init__(self, reads: Reads, containers: Containers, busy: Sequence[str]) -> None:
        self._reads = reads
        self._count = containers.count
        self._busy = busy
        self._hosts = containers.hosts()
        self._troubled = in_words(containers.outages())

    def of(self, view: Reader, state: Any) -> Wait | None:
        """What keeps the work on an aggregate of this state; None if it runs, or that is not known."""
        return self._of(view, state, MAX_CHAIN)

    def _of(self, view: Reader, state: Any, most: int) -> Wait | None:
        workflow = running(state)
        progress = progress_of(workflow)
        if progress is Progress.RUNNING:
            return None
        found = waits_for(view, state, self._busy_in(state))
        if found is not None:
            other, its_view = self._reads.known(found.aggregate)
            then = self._of(its_view, other, most - 1) if most else None
            return Wait(aggregate=found.aggregate, kind=found.kind or None, why=found.why, then=then)
        return self._container(view, state) or (
            Wait(why=workflow.last_error) if workflow is not None and progress is Progress.WAITING else None
        )

    def _busy_in(self, state: Any) -> list[str]:
        if not isinstance(state, Scope):
            return []
        return [a for a in self._busy if a.partition(":")[2].startswith(f"{state.name}/")]

    def _container(self, view: Reader, state: Any) -> Wait | None:
        if not self._troubled:
            return None
        for name in islice(segments_at_work(view, state), MAX_SEGMENTS_SEEN):
            container = container_of(name, self._count)
            if container in self._troubled:
                host = self._hosts.get(container)
                store = str(host) if host is not None else None
                return Wait(container=container, store=store, why=self._troubled[container])
        return None
