"""Within a simulated run, what coordination draws follows from the run's seed.

It draws pauses from the module `random` and makes ids by `uuid` and `secrets`; here these begin anew from the seed.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch
from uuid import UUID


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within it all follows from the seed. It may be entered anew within itself."""
    before, ids = random.getstate(), random.Random(seed)
    random.seed(seed)
    try:
        with (
            patch("uuid.uuid4", lambda: UUID(int=ids.getrandbits(128), version=4)),
            patch("secrets.token_hex", lambda count: ids.randbytes(count).hex()),
        ):
            yield
    finally:
        random.setstate(before)
