"""Which periodic jobs there are, and what each is made of."""

from collections.abc import Callable, Iterable

from sluice.pravega.store import SegmentStore
from sluice.runtime import Runtime
from stream_workflows.periodic import Periodic
from stream_workflows.report_publisher import ReportPublisher
from stream_workflows.retention_reports import RetentionChanges, RetentionSamples
from stream_workflows.scale_reports import ScaleReports
from stream_workflows.settings import WorkflowSettings
from stream_workflows.stream_index import StreamIndex
from stream_workflows.watermark_truncation import WatermarkTruncation
from stream_workflows.watermarks import Watermarks


def periodic_work(
    runtime: Runtime, settings: WorkflowSettings, store: SegmentStore, owned: Callable[[], Iterable[int]]
) -> Periodic:
    """Everything that is done periodically for the partitions in `owned()`."""
    journal, publisher = runtime.journal, ReportPublisher(runtime.producer, runtime.source, runtime.clock)
    index = StreamIndex(journal)
    jobs = (
        Watermarks(journal, store, index, settings.watermark_interval_s),
        WatermarkTruncation(runtime, store, index, settings.mark_interval_s),
        ScaleReports(runtime, store, publisher, settings.report_interval_s, settings.report_keep_bytes),
        RetentionSamples(journal, store, index, publisher, settings.sample_interval_s),
        RetentionChanges(journal, index, publisher, settings.change_interval_s),
    )
    return Periodic(journal, owned, jobs, prepare=index.prepare)
