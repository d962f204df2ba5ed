"""Where txn-manager is put together."""

from sluice.runtime import Runtime, run_service
from sluice.workflows.data_plane import open_data_plane
from txn_manager.service import TxnService
from txn_manager.settings import TxnSettings


def main() -> None:
    settings = TxnSettings()

    async def start(runtime: Runtime) -> None:
        store = open_data_plane(runtime, settings.store_timeout_s)
        service = TxnService(runtime, settings, store)
        runtime.checks.update(service.checks())
        runtime.degraded.update(service.degraded())
        await service.start()
        runtime.stack.push_async_callback(service.stop)

    run_service("txn-manager", settings, start)
