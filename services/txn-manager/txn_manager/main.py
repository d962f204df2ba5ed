"""Where txn-manager is put together."""

from sluice.domain.statistics import TransactionCounter
from sluice.runtime import Runtime, run_service
from sluice.settings import settings_of
from sluice.workflows.data_plane import open_data_plane
from sluice.workflows.statistics import StatisticsReporter
from txn_manager.service import TxnService
from txn_manager.settings import TxnSettings
from txn_manager.statistics.supervisor import StatisticsProcess


def main() -> None:
    settings = settings_of(TxnSettings)

    async def start(runtime: Runtime) -> None:
        store = open_data_plane(runtime, settings.store_timeout_s)
        service = TxnService(runtime, settings, store)
        runtime.checks.update(service.checks())
        runtime.degraded.update(service.degraded())
        await service.start()
        runtime.stack.push_async_callback(service.stop)
        reporter = StatisticsReporter(runtime, TransactionCounter(), lambda: service.commits.partitions, marks=True)
        runtime.spawn(reporter.run(settings.statistics_s), "statistics reports")
        statistics = StatisticsProcess(settings)
        runtime.degraded["statistics"] = statistics.problem
        runtime.stack.push_async_callback(statistics.stop)
        statistics.start()

    run_service("txn-manager", settings, start)
