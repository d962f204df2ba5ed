"""One look at a custom resource and at what Sluice has, and the change that makes the two equal.

Nothing is remembered between two looks, so it does not matter which one was missed, or who changed what meanwhile. A
spec is complete: the API server fills in the defaults of the definitions (deploy/k8s/components/custom-resources).
Blocking. Raises what `Api` raises.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, NamedTuple

from sluice.domain.status import Status
from sluice_cli.api import Api, path_of
from sluice_cli.errors import CommandError, RefusedError

Spec = Mapping[str, Any]

SETTINGS = ("scaling", "retention", "tags", "rolloverSizeBytes", "timestampAggregationTimeout")
"""What a stream's spec says of its configuration, by the names of the REST interface."""

_GONE = frozenset({Status.SCOPE_NOT_FOUND, Status.STREAM_NOT_FOUND})


class Outcome(NamedTuple):
    """Whether Sluice has what the resource says; `reason` in one word, `message` for people."""

    is_ready: bool
    reason: str
    message: str


def keep_scope(api: Api, spec: Spec) -> Outcome:
    """Have the scope there."""
    path = path_of("scopes", spec["scope"])
    if _read(api, path) is not None:
        return Outcome(True, "AsSpecified", "the scope is there")
    api.change("PUT", path)
    return Outcome(True, "Created", "the scope was created")


def keep_stream(api: Api, spec: Spec) -> Outcome:
    """Have the stream there, with this configuration."""
    path, wanted = _stream(spec), {name: spec.get(name) for name in SETTINGS}
    present = _read(api, path)
    if present is None:
        api.change("PUT", path, wanted, {"If-None-Match": "*"})
        return Outcome(True, "Created", "the stream was created")
    config = present.body["config"]
    different = [name for name in SETTINGS if config.get(name) != wanted[name]]
    if not different:
        return Outcome(True, "AsSpecified", "the stream is configured as specified")
    api.change("PUT", path, wanted, {"If-Match": present.etag})
    return Outcome(True, "Updated", f"the stream was configured anew: {', '.join(different)}")


def remove_scope(api: Api, spec: Spec) -> None:
    """Delete the scope, and with `DeleteAll` what is in it."""
    if _read(api, path_of("scopes", spec["scope"])) is not None:
        api.change("DELETE", path_of("scopes", spec["scope"]), recursive=spec["deletion"] == "DeleteAll")


def remove_stream(api: Api, spec: Spec) -> None:
    """Delete the stream with its data."""
    path = _stream(spec)
    if _read(api, path) is not None:
        api.change("POST", f"{path}/seal")
        api.change("DELETE", path)


def failed(error: CommandError) -> Outcome:
    """What a look came to that Sluice refused, or that did not reach it."""
    if not isinstance(error, RefusedError):
        return Outcome(False, "Unreachable", str(error))
    word = HTTPStatus(error.status).phrase.replace(" ", "") if error.status else "Refused"
    return Outcome(False, error.reason or word, str(error))


def conditions(before: Iterable[Mapping[str, Any]], outcome: Outcome, generation: int, now: datetime) -> list[Any]:
    """The conditions of a resource, one, as Kubernetes has them."""
    status, stamp = str(outcome.is_ready), now.strftime("%Y-%m-%dT%H:%M:%SZ")
    since = [one["lastTransitionTime"] for one in before if one["type"] == "Ready" and one["status"] == status]
    return [
        {
            "type": "Ready",
            "status": status,
            "reason": outcome.reason,
            "message": outcome.message,
            "observedGeneration": generation,
            "lastTransitionTime": (since or [stamp])[0],
        }
    ]


def _stream(spec: Spec) -> str:
    return path_of("scopes", spec["scope"], "streams", spec["stream"])


def _read(api: Api, path: str) -> Any:
    """What is there, None without it."""
    try:
        return api.read(path)
    except RefusedError as error:
        if error.reason not in _GONE:
            raise
        return None
