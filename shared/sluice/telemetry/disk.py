"""Whether the disk is full that the process works on.

Where all parts share one disk, as in an embedded system, this is why Kafka takes no records any more; the clients of
Kafka say only that it does not answer. Functions without state.
"""

import shutil
from pathlib import Path

FULL_BYTES = 64 * 2**20
"""Kafka and BookKeeper allocate files in larger pieces than that."""


def disk_problem() -> str | None:
    """Say that the disk of the working folder is full; None while it is not."""
    folder = Path.cwd()
    free = shutil.disk_usage(folder).free
    return (
        f"no space left on device: {free // 2**20} MiB are free on the disk of {folder}" if free < FULL_BYTES else None
    )
