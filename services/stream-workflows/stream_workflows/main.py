"""Where stream-workflows is put together."""

from typing import Any

from sluice.insight.statistics import OperationCounter
from sluice.runtime import Runtime, Service
from sluice.settings import settings_of
from sluice.workflows.data_plane import open_data_plane
from sluice.workflows.statistics import StatisticsReporter
from stream_workflows.periodic_jobs import periodic_work
from stream_workflows.policies import decide_policies
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings


async def start(runtime: Runtime, settings: WorkflowSettings) -> None:
    """Serve until the runtime's stack is unwound."""
    store = open_data_plane(runtime, settings.store_timeout_s)
    service = WorkflowService(runtime, settings, store)
    consumer = service.consumer
    runtime.checks["consumer"] = consumer.problem
    consumer.start()
    runtime.stack.push_async_callback(consumer.stop)
    runtime.spawn(periodic_work(runtime, settings, store, lambda: consumer.partitions).run(), "periodic")
    if settings.decides_policies:
        decide_policies(runtime, settings)
    reporter = StatisticsReporter(runtime, OperationCounter(), lambda: consumer.partitions)
    runtime.spawn(reporter.run(settings.statistics_s), "statistics reports")


def service(**given: Any) -> Service:
    """With the settings of the environment, behind those that are given."""
    settings = settings_of(WorkflowSettings, **given)
    return Service("stream-workflows", settings, lambda runtime: start(runtime, settings))
