"""What the client library raises, as errors of a command: what happened, what to do next, the exit code."""

from collections.abc import Iterator
from contextlib import contextmanager

from sluice.security.hiding import shown
from sluice_cli.errors import RefusedError, UnreachableError
from sluice_client import (
    AccessRefused,
    ClientError,
    MalformedEvents,
    SegmentStoreError,
    StreamMissing,
    StreamSealed,
    TryLater,
    Unavailable,
)


@contextmanager
def as_command_errors(controller: str, stream: str) -> Iterator[None]:
    """Raises CommandError for what the client library raises about a stream."""
    try:
        yield
    except StreamMissing as error:
        raise RefusedError(
            f"stream {stream} does not exist",
            f"`sluice stream list {stream.partition('/')[0]}` shows the streams there are",
        ) from error
    except StreamSealed as error:
        raise RefusedError(
            f"stream {stream} is sealed: nothing can be written to it", "write to another one"
        ) from error
    except Unavailable as error:
        raise UnreachableError(
            f"no answer through the controller at {shown(controller)}: {error.detail}",
            "is Sluice running (`make status`, `kubectl get pods`)? "
            "Another address: --controller URL or SLUICE_CONTROLLER",
        ) from error
    except TryLater as error:
        raise UnreachableError(
            f"no segment store answered: {error}", "`sluice container list` shows which one should"
        ) from error
    except MalformedEvents as error:
        raise RefusedError(
            f"what is in stream {stream} is no event: {error}", "does another kind of client write to it?"
        ) from error
    except AccessRefused as error:
        raise RefusedError(
            str(error), "SLUICE_USER and SLUICE_PASSWORD_FILE say who you are, `sluice security may` what you may do"
        ) from error
    except (ClientError, SegmentStoreError) as error:
        raise RefusedError(str(error)) from error
