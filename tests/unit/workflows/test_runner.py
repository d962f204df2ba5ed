"""The runner: whatever a step fails with, the workflow goes on, and people are told."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from support.memory_journal import JournalWorld
from support.virtual_time import run

from sluice.domain import events as ev
from sluice.domain import table as tables
from sluice.domain.config import TableConfig
from sluice.domain.names import key_of
from sluice.domain.workflow import WorkflowKind
from sluice.messaging.keyed_consumer import Delivery
from sluice.workflows.crash_points import CrashPoints
from sluice.workflows.runner import Runner
from sluice.workflows.steps import Step, plain

AGGREGATE = "table:sc/t"
CREATION = ev.TableCreationStarted(
    scope="sc", table="t", incarnation="i", config=TableConfig(1, 4), created_at=0, segments=(ev.Segment(0, 0.0, 1.0),)
)


class Slotless:
    """A delivery for those who need no slot."""

    @asynccontextmanager
    async def waiting(self) -> AsyncIterator[None]:
        yield


def test_an_error_whose_text_no_record_can_hold_is_told_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    # Nor can a report to another process of the test run hold it.
    caplog.set_level(logging.CRITICAL)

    async def scene() -> None:
        world, failures = JournalWorld(), ["\udcff"] * 3
        world.seed(key_of(AGGREGATE), CREATION)

        async def fail(_tools: None, _state: Any) -> None:
            if failures:
                raise OSError(f"no such file: {failures.pop()}")

        steps = {WorkflowKind.CREATE_TABLE: (Step("create-segments", fail, plain(tables.finish_create)),)}
        runner = Runner(world.first.journal, steps, None, CrashPoints(""))
        await runner.run(AGGREGATE, cast(Delivery, Slotless()))
        told = [e.error for r in world.records(key_of(AGGREGATE)) for e in r.events if hasattr(e, "error")]
        assert told == ["OSError: no such file: ?"]
        table = tables.find_table(world.view(key_of(AGGREGATE)), "sc", "t")
        assert table is not None and table.state is tables.TableState.ACTIVE

    run(scene())
