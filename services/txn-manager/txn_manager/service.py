"""The service: nothing is decided here yet."""

from collections.abc import Callable, Mapping

from sluice.runtime import Runtime
from sluice.segmentstore.store import SegmentStore
from txn_manager.settings import TxnSettings


class TxnService:
    def __init__(self, runtime: Runtime, settings: TxnSettings, store: SegmentStore) -> None:
        self._runtime = runtime
        self._settings = settings
        self._store = store

    def checks(self) -> Mapping[str, Callable[[], str | None]]:
        return {}

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return
