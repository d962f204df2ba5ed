"""Document stores as the command line opens them: by URL, with errors that say what to do."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from sluice.security.hiding import shown
from sluice_cli.errors import RefusedError, UnreachableError, UsageError
from sluice_coordination import (
    CoordinationError,
    DocumentStore,
    StoreHeldError,
    StoreUnavailableError,
    open_store,
)
from sluice_coordination.store import file_of


def default_url(name: str) -> str:
    """Return the store of a job that was given none: a file of its own, in the user's folder for such things."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return f"file:{Path(home) / 'sluice' / 'ingest' / f'{name}.json'}"


def is_new_file(url: str) -> bool:
    """Whether a store is a file that is not there, which need not be made in order to read it."""
    file = file_of(url)
    return file is not None and not file.exists()


@asynccontextmanager
async def opened(url: str, timeout_s: float) -> AsyncIterator[DocumentStore]:
    """Open a store for the block, in which CoordinationErrors become CommandErrors; a file's folder is made."""
    try:
        if (file := file_of(url)) is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
        store = open_store(url, timeout_s)
        opening = store.__aenter__()
        found = await opening
    except ValueError as error:
        hint = "write it like file:/path/to/file, redis://host:6379 or opensearch://host:9200/index"
        raise UsageError(str(error), hint) from error
    except (CoordinationError, OSError) as error:
        raise _command_error(url, error) from error
    try:
        yield found
    except CoordinationError as error:
        raise _command_error(url, error) from error
    finally:
        await store.__aexit__(None, None, None)


def _command_error(url: str, error: Exception) -> RefusedError | UnreachableError:
    if isinstance(error, StoreHeldError):
        return RefusedError(
            str(error),
            "one process at a time uses a file: stop that one, or give all nodes a store for many with "
            "--store redis://HOST:6379 or --store opensearch://HOST:9200/INDEX",
        )
    if isinstance(error, StoreUnavailableError):
        return UnreachableError(
            str(error), f"is {shown(url)} running? Another store: --store URL or SLUICE_INGEST_STORE"
        )
    return RefusedError(str(error), f"look at what {shown(url)} holds")
