"""Where stream-workflows is put together."""

from sluice.domain.cluster import CLUSTER, cluster_of
from sluice.runtime import Runtime, run_service
from sluice.segmentstore.client import SegmentStoreClient
from sluice.segmentstore.host import Host
from stream_workflows.data_plane import DataPlane
from stream_workflows.periodic_jobs import periodic_work
from stream_workflows.service import WorkflowService
from stream_workflows.settings import WorkflowSettings


def main() -> None:
    settings = WorkflowSettings()

    async def start(runtime: Runtime) -> None:
        journal = runtime.journal

        def route(container: int) -> Host | None:
            host = cluster_of(journal.reader(CLUSTER)).containers.get(container)
            return Host(host.address, host.port) if host is not None else None

        store = SegmentStoreClient(route, settings.container_count, call_timeout_s=settings.store_timeout_s)
        runtime.stack.push_async_callback(store.close)
        data_plane = DataPlane(store, settings.container_count)
        runtime.checks["segment stores"] = data_plane.problem
        runtime.spawn(data_plane.wait(), "data plane probe")
        service = WorkflowService(runtime, settings, store)
        consumer = service.consumer
        runtime.checks["consumer"] = lambda: (
            repr(consumer.failure) if consumer.failure else None if consumer.joined else "joining its group"
        )
        consumer.start()
        runtime.stack.push_async_callback(consumer.stop)
        runtime.spawn(periodic_work(runtime, settings, store, lambda: consumer.partitions).run(), "periodic")

    run_service("stream-workflows", settings, start)
