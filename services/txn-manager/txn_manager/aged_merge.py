"""Merges transactions into a stream that scales by load, each with the age that it has for its client.

A store counts all events of what it merges if that was created in the last five seconds; of a longer time it counts the
share of five seconds. Segments of prepared transactions are created before their open (`preparer.py`), so few of their
events would count, and the stream would not split. So where the share would be too low the time of creation is set to
that of the open, on the same connection, right before the request to merge: a store carries both out in this order.
Rules: segment-store-wire-protocol 4.8 and 4.10.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from sluice.engine.step import all_done
from sluice.pravega.errors import SegmentMissing, SegmentSealed
from sluice.pravega.store import CREATION_TIME_ATTRIBUTE, SegmentStore
from txn_manager.early_answers import EarlyAnswers

COUNTED_WHOLE_MS = 5_000
"""What was created so recently a store counts as a whole."""


async def creation_time(store: SegmentStore, name: str) -> int | None:
    """In epoch ms. Raises SegmentMissing."""
    return await store.attribute(name, CREATION_TIME_ATTRIBUTE)


class AgedMerge:
    """Merges as `SegmentStore.merge_batch` does. `opened_at` has the times of opens, in epoch ms, by segment."""

    def __init__(
        self,
        store: SegmentStore,
        opened_at: Mapping[str, int],
        creation_times: EarlyAnswers[int | None],
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._opened_at = opened_at
        self._creation_times = creation_times
        self._now_ms = now_ms

    async def __call__(self, target: str, sources: Sequence[str]) -> list[int]:
        created = await all_done(map(self._creation_times.answer, sources))
        whole_from = self._now_ms() - COUNTED_WHOLE_MS
        calls: list[Awaitable[list[int] | None]] = [
            self._set(name, at)
            for name, at in zip(sources, created, strict=True)
            if at is not None and at < min(self._opened_at.get(name, at), whole_from)
        ]
        *_, lengths = await all_done([*calls, self._store.merge_batch(target, sources)])
        assert lengths is not None
        return lengths

    async def _set(self, name: str, created_at: int) -> None:
        # Another process may be merging the same batch. For a source that it has merged the store closes the connection
        # (4.1): the next attempt asks for the time anew, and the segment is missing.
        with suppress(SegmentMissing, SegmentSealed):
            await self._store.update_attribute(name, CREATION_TIME_ATTRIBUTE, self._opened_at[name], created_at)
