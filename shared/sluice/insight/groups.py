"""A reader group as it is shown, of now or of a moment of the past.

How far it has read stands in the descriptions of its streams.
"""

from typing import Literal

from sluice.domain.reader_group.state import ReaderGroup
from sluice.insight.shown import Allowed, Moment, Shown, cut_shown, text
from sluice.insight.workflows import RunningWorkflow, workflow_shown


class GroupStream(Shown):
    """From where to where a stream is read."""

    start: dict[str, int] | None = text("Left out: from the head of the stream.", default=None)
    end: dict[str, int] | None = text("Left out: for ever.", default=None)


class GroupConfiguration(Shown):
    """The configuration of a reader group as it is stored."""

    streams: dict[str, GroupStream]
    retention: Literal["none", "manual", "automatic"]
    refresh_ms: int
    checkpoint_interval_ms: int
    max_outstanding_checkpoints: int


class GroupDescription(Moment):
    """A reader group."""

    scope: str
    name: str
    id: str = text("Its UUID.")
    generation: int = text("One more with each update.")
    state: str = text("CREATING, ACTIVE or DELETING.")
    created_at: int = text("When it was created, epoch ms.")
    config: GroupConfiguration
    workflow: RunningWorkflow | None = text("What changes it at the moment.", default=None)
    allowed: list[Allowed] | None = text(
        "What the caller may do: update, delete; retry and cancel of its workflow. Left out of the past.", default=None
    )


def group_shown(group: ReaderGroup) -> GroupDescription:
    config = group.config
    return GroupDescription(
        scope=group.id.scope,
        name=group.id.name,
        id=config.id,
        generation=config.generation,
        state=group.state.value,
        created_at=group.created_at,
        config=GroupConfiguration(
            streams={
                name: GroupStream(start=cut_shown(start) or None, end=cut_shown(config.ends.get(name, {})) or None)
                for name, start in config.starts.items()
            },
            retention=config.retention.word,
            refresh_ms=config.refresh_ms,
            checkpoint_interval_ms=config.checkpoint_interval_ms,
            max_outstanding_checkpoints=config.max_outstanding_checkpoints,
        ),
        workflow=workflow_shown(group.workflow),
    )
