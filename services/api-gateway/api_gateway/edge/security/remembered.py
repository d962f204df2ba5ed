"""What was proved a moment ago, so that it need not be proved with every call.

A proof is kept as a digest under a key that only this process has: neither passwords nor tokens stay in memory.
"""

import hashlib
import secrets
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """At most `most` proofs, each with what follows from it, for `seconds` at most. Belongs to the event loop."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float]) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._key = secrets.token_bytes(32)
        self._kept: dict[bytes, tuple[float, T]] = {}

    def digest(self, *parts: str) -> bytes:
        """What stands for a proof, here and in this process alone."""
        state = hashlib.blake2b(key=self._key, digest_size=32)
        for part in parts:
            data = part.encode(errors="surrogatepass")
            state.update(len(data).to_bytes(8))
            state.update(data)
        return state.digest()

    def get(self, digest: bytes) -> T | None:
        """What follows from a proof that is remembered."""
        found = self._kept.get(digest)
        if found is None:
            return None
        if found[0] <= self._clock():
            del self._kept[digest]
            return None
        return found[1]

    def put(self, digest: bytes, value: T, seconds: float | None = None) -> None:
        """Remember a proof, no longer than `seconds`; the oldest ones leave when they are over, or too many."""
        now = self._clock()
        self._kept.pop(digest, None)
        while self._kept:
            oldest = next(iter(self._kept))
            if len(self._kept) < self._most and self._kept[oldest][0] > now:
                break
            del self._kept[oldest]
        self._kept[digest] = (now + min(self._seconds, seconds or self._seconds), value)
