"""The overview of the system, and the partitions of its requests.

Numbers are of everything; what the caller may not READ is not named.
"""

from itertools import islice
from typing import Annotated, Literal

from fastapi import Request, Response
from pydantic import Field

from api_gateway.console import overview
from api_gateway.console.partitions import Partitions
from api_gateway.console.rest.base import Model, refusals, router
from api_gateway.console.rest.waiting import Waits
from api_gateway.edge.containers import Containers
from api_gateway.edge.health import Health
from api_gateway.edge.listing import may_read
from api_gateway.edge.reads import Reads
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedContainers, ServedReads, served
from api_gateway.edge.security.aggregates import may_see
from api_gateway.edge.security.rest_resources import WORKFLOWS
from sluice.domain.ids import StreamId
from sluice.domain.workflow import is_under_way
from sluice.insight.progress import Progress
from sluice.outages import in_words
from sluice.security.resources import mapped_resource

routes = router("cluster")

MAX_HOT = 20
"""How many hot streams are named."""


class CountsModel(Model):
    """How much there is, but for what is internal; what is not counted yet is left out."""

    scopes: int
    streams: int
    groups: int
    tables: int
    segments: int | None = Field(default=None, description="Active segments.")
    transactions_open: int | None = None
    transactions_waiting: int | None = Field(default=None, description="Those whose commit waits or is under way.")


class FailingModel(Model):
    """A workflow whose step is tried again and again."""

    aggregate: str = Field(examples=["stream:demo/greetings"])
    kind: str = Field(examples=["scale-stream"])
    since: int = Field(description="When it began, epoch ms.")
    error: str


class WorkflowsModel(Model):
    """How many workflows get on in which way."""

    running: int
    failing: int
    waiting: int = Field(description="For other work.")
    queued: int = Field(description="Not begun: other work on their aggregates comes first.")
    oldest_failing: FailingModel | None = None


class PartModel(Model):
    """A service, or all segment stores together."""

    name: str = Field(examples=["retention-spark"])
    up: bool | None = Field(
        default=None, description="Whether it is there, and every segment container answers; left out if not known."
    )


class OverviewModel(Model):
    """Whether anything is wrong, as this gateway sees it."""

    sentence: str = Field(examples=["2 workflows failing, the oldest for 12 min: container 2 does not answer."])
    level: Literal["ok", "warn", "bad"] = Field(description="Bad: some calls cannot be served.")
    ready: bool = Field(
        description="Whether all calls can be served: false while this gateway cannot, a service has no instance, or a "
        "segment container does not answer."
    )
    problems: list[str] = Field(description="What is wrong with this gateway, the other services and segment stores.")
    counts: CountsModel
    workflows: WorkflowsModel
    dead_letters: int | None = Field(
        default=None, description="Those that need attention; left out if they could not be read."
    )
    dead_letter_records: int | None = Field(
        default=None, description="Records in the topic of dead letters: while these are as many, no letter changed."
    )
    overdue_leases: int = Field(description="Transactions open past the end of their lease, of the oldest ones.")
    hot_streams: list[str] = Field(
        description="Streams that were split in the last ten minutes, or could not be, as scope/name: by decisions."
    )
    parts: list[PartModel] = Field(description="The services, retention-spark where there is one, and segment stores.")
    at: int = Field(description="When this was found, epoch ms.")


class PartitionModel(Model):
    """A partition of a topic of requests."""

    topic: str = Field(examples=["sluice.requests.streams"])
    partition: int
    owner: str | None = Field(default=None, description="The instance that owns it; left out if none does.")
    lag: int = Field(description="How many records are not acknowledged.")
    oldest_open_ms: int | None = Field(
        default=None, description="How long ago the broker took the oldest of them, in ms to within a tenth."
    )
    end: int = Field(description="The offset of the next record.")


class PartitionList(Model):
    """All partitions of the topics of requests."""

    items: list[PartitionModel]
    at: int = Field(description="When Kafka said so, epoch ms.")


@routes.get("/overview", operation_id="getOverview", response_model=OverviewModel, responses=refusals())
async def get_overview(
    request: Request,
    reads: ServedReads,
    containers: ServedContainers,
    shared: Annotated[overview.Overview, served(overview.Overview)],
) -> Response:
    """Say whether anything is wrong, in one sentence and in numbers; not older than some seconds."""
    found = await shared.found()
    health: Health = request.app.state.health
    cannot = [*health.cannot(), *dict.fromkeys(in_words(containers.outages()).values())]
    troubles = health.troubles()
    oldest = found.workflows.oldest_failing
    if oldest is not None and not (may_read(WORKFLOWS) or may_see(oldest.aggregate)):
        oldest = None
    level = overview.judged(found, oldest, cannot, troubles, _cause(reads, containers, oldest))
    counts, progress = found.counts, found.workflows.by_progress
    hot = (name for name in found.hot_streams if may_read(mapped_resource(*StreamId.of(name))))
    return as_json(
        OverviewModel(
            sentence=level.sentence,
            level=level.level,
            ready=not cannot,
            problems=[*cannot, *troubles],
            counts=CountsModel.model_validate(counts, from_attributes=True),
            workflows=WorkflowsModel(
                running=progress[Progress.RUNNING],
                failing=progress[Progress.FAILING],
                waiting=progress[Progress.WAITING],
                queued=progress[Progress.QUEUED],
                oldest_failing=FailingModel.model_validate(oldest, from_attributes=True) if oldest else None,
            ),
            dead_letters=found.dead_letters.open if found.dead_letters is not None else None,
            dead_letter_records=found.dead_letters.records if found.dead_letters is not None else None,
            overdue_leases=found.overdue_leases,
            hot_streams=list(islice(hot, MAX_HOT)),
            parts=[PartModel(name=name, up=part.is_up) for name, part in health.others().items()],
            at=found.at,
        )
    )


def _cause(reads: Reads, containers: Containers, failing: overview.FailingWorkflow | None) -> str:
    """Why a workflow fails that waits for a segment container; empty if it does not, or has ended.

    What is wrong with the container is in the sentence already.
    """
    if failing is None:
        return ""
    state, view = reads.known(failing.aggregate)
    wait = Waits(reads, containers, ()).of(view, state) if is_under_way(state) else None
    while wait is not None and wait.then is not None:
        wait = wait.then
    return f"it waits for container {wait.container}" if wait is not None and wait.container is not None else ""


@routes.get("/partitions", operation_id="listPartitions", response_model=PartitionList, responses=refusals())
async def list_partitions(partitions: Annotated[Partitions, served(Partitions)]) -> Response:
    """List the partitions of requests: who owns them, and what waits in them."""
    found = await partitions.progress()
    items = [
        PartitionModel(
            topic=one.topic,
            partition=one.partition,
            owner=one.owner or None,
            lag=one.lag,
            oldest_open_ms=one.oldest_ms,
            end=one.end,
        )
        for one in found.items
    ]
    return as_json(PartitionList(items=items, at=found.at))
