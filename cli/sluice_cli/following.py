"""Following what changes: the gateway's feed of events, resumed where the gateway ends it."""

from collections.abc import Iterator
from typing import Any

from sluice_cli.api import Api, path_of
from sluice_cli.errors import CommandError, UnreachableError

_PASSED_OVER = ("hello", "beat", "bye")


def changes(api: Api, of: str, since: str | None, count: int | None) -> Iterator[dict[str, Any]]:
    """The changes as they come, each with its position: `changed`, or `many` where some were missed.

    Without `since` from now on. Raises as Api does; the hint says from which position to go on.
    """
    position, left = since, count
    while True:
        is_resumable = False
        try:
            for event in api.events(path_of("events"), of=of, since=position):
                position = event.get("position", position)
                is_resumable = event["event"] == "bye" and event.get("reason") in ("expired", "displaced")
                if event["event"] in _PASSED_OVER:
                    continue
                yield event
                left = None if left is None else left - 1
                if left == 0:
                    return
        except CommandError as error:
            if position is not None:
                error.hint = f"go on with --since {position}"
            raise
        if not is_resumable:
            hint = f"go on with --since {position}" if position is not None else ""
            raise UnreachableError("the gateway has ended the feed", hint)
