"""Dry runs: what an operation on a stream would do, in numbers, before it is requested.

Answered from the view behind the barrier, by the decision itself. A truncation and a deletion also rest on the lengths
of segments, which the segment stores report: a bounded number of them, for a bounded time.
"""

from typing import Annotated

from fastapi import Depends, Query, Response
from pydantic import Field, RootModel

from api_gateway.console.lengths import lengths_of
from api_gateway.console.rest.base import Model, Taken
from api_gateway.console.rest.replies import why
from api_gateway.edge.reads import Reads
from api_gateway.edge.rest.answers import as_json
from api_gateway.edge.rest.parts import ServedClock, ServedReads, served
from sluice.domain.segment import segment_name
from sluice.engine.ports import Clock
from sluice.insight.effects import Operation, dry_run, segments_to_measure
from sluice.pravega.store import SegmentStore

DryRunQuery = Annotated[
    bool,
    Query(alias="dryRun", description="Change nothing: say what it would do, or why it would not."),
]


class EffectsModel(Model):
    """What an operation would do, as far as it applies; by the time it is requested that may be something else."""

    segments_created: int | None = None
    segments_sealed: int | None = None
    segments_deleted: int | None = None
    transactions_aborted: int | None = Field(default=None, description="How many are open, or being aborted.")
    transactions_committed: int | None = Field(default=None, description="How many are committed before that.")
    bytes_dropped: int | None = Field(default=None, description="Left out where segment stores do not say.")
    reader_groups_behind: int | None = Field(
        default=None, description="How many subscribed reader groups have yet to read some of what goes."
    )
    waits_for: str | None = Field(default=None, description="What it would wait for before it begins, in words.")


class RefusedModel(Model):
    """Why an operation would be refused."""

    status: str = Field(description="Pravega's name of the status.", examples=["STREAM_NOT_SEALED"])
    detail: str


class DryRunModel(Model):
    """The answer to a dry run."""

    effects: EffectsModel
    refused: RefusedModel | None = Field(default=None, description="Left out if it would not be refused.")


class AnyAnswer(RootModel[Taken | DryRunModel]):
    """The answer to a change, or to its dry run."""


class DryRuns:
    """Answers dry runs."""

    def __init__(self, reads: Reads, clock: Clock, store: SegmentStore) -> None:
        self._reads = reads
        self._clock = clock
        self._store = store

    async def __call__(self, command: Operation, about: str) -> Response:
        """What the operation would come to; `about` names the stream. Raises JournalError."""
        await self._reads.everything()
        lengths = await self._lengths(command)
        found = dry_run(self._reads.view(command.key), command, self._clock.now_ms(), lengths)
        effects, reply = found.effects, found.refused
        refused = None
        if reply is not None:
            refused = RefusedModel(status=reply.status, detail=f"{about}: {why(reply)}")
        shown = EffectsModel(**{name: getattr(effects, name) for name in effects.__struct_fields__})
        return as_json(DryRunModel(effects=shown, refused=refused))

    async def _lengths(self, command: Operation) -> dict[int, int]:
        """The lengths, in bytes, of the segments that it takes, as far as segment stores have answered in time."""
        wanted = segments_to_measure(self._reads.known_stream(command.stream_id), command)
        names = {segment_name(*command.stream_id, segment): segment for segment in wanted}
        return {names[name]: length for name, length in (await lengths_of(self._store, names)).items()}


async def _dry_runs(
    reads: ServedReads, clock: ServedClock, store: Annotated[SegmentStore, served(SegmentStore)]
) -> DryRuns:
    return DryRuns(reads, clock, store)


DryRun = Annotated[DryRuns, Depends(_dry_runs)]
