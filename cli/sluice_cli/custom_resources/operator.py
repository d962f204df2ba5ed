"""The operator: kopf watches one namespace, calls for each resource that is there or changes, and once a minute.

One process is enough; two do the same twice. Looks run in threads, several at a time, of one resource mostly one after
the other; where two overlap, Sluice's own conditions (ETags) let one of them win, and the next look mends the rest.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import Any

import kopf

from sluice_cli.api import Api
from sluice_cli.custom_resources.keeping import (
    Outcome,
    Spec,
    conditions,
    failed,
    keep_scope,
    keep_stream,
    remove_scope,
    remove_stream,
)
from sluice_cli.errors import CommandError

GROUP, VERSION = "sluice.io", "v1"
LOOK_S = 60.0
RETRY_S = 10.0

Open = Callable[[], AbstractContextManager[Api]]
"""A connection for one look: passwords and authorities are read anew each time, so they may be replaced."""


def run(open_api: Open, namespace: str, health: str | None) -> None:
    """Work until a signal comes; `health` is where /livez is served."""
    kopf.configure(log_format=kopf.LogFormat.JSON)
    # A line for each probe and each look would hide the others.
    for library in ("aiohttp.access", "httpx"):
        logging.getLogger(library).setLevel(logging.WARNING)
    kopf.run(
        registry=registry(open_api),
        settings=settings(),
        namespaces=[namespace],
        standalone=True,
        liveness_endpoint=f"http://{health}/livez" if health else None,
    )


def settings() -> kopf.OperatorSettings:
    """Those of kopf, with names of ours in what it writes into resources."""
    found = kopf.OperatorSettings()
    found.persistence.finalizer = f"{GROUP}/deletion"
    found.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    found.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP)
    found.posting.level = logging.WARNING
    # It may see its namespace and nothing of the cluster.
    found.scanning.disabled = True
    return found


def registry(open_api: Open) -> kopf.OperatorRegistry:
    """What is done for which resources."""
    found = kopf.OperatorRegistry()
    kopf.on.login(registry=found)(_log_in)
    _register(found, "scopes", open_api, keep_scope, remove_scope)
    _register(found, "streams", open_api, keep_stream, remove_stream)
    return found


def _log_in(**given: Any) -> Any:
    """In a pod with its account, elsewhere as kubectl does."""
    return kopf.login_with_service_account(**given) or kopf.login_with_kubeconfig(**given)


def _register(
    registry: kopf.OperatorRegistry,
    plural: str,
    open_api: Open,
    keep: Callable[[Api, Spec], Outcome],
    remove: Callable[[Api, Spec], None],
) -> None:
    def look(what: Callable[[Api], Outcome], given: dict[str, Any]) -> None:
        error: CommandError | None = None
        try:
            with open_api() as api:
                outcome = what(api)
        except CommandError as failure:
            error, outcome = failure, failed(failure)
        before = given["status"].get("conditions", ())
        found = conditions(before, outcome, given["meta"]["generation"], datetime.now(UTC))
        given["patch"].status["conditions"] = found
        if error is not None:
            raise kopf.TemporaryError(str(error), delay=RETRY_S)

    def kept(**given: Any) -> None:
        look(lambda api: keep(api, given["spec"]), given)

    def removed(**given: Any) -> None:
        def gone(api: Api) -> Outcome:
            remove(api, given["spec"])
            return Outcome(False, "Deleted", "it is gone")

        look(gone, given)

    for on in (kopf.on.resume, kopf.on.create, kopf.on.update):
        on(GROUP, VERSION, plural, id="keep", registry=registry)(kept)
    kopf.timer(GROUP, VERSION, plural, id="look", interval=LOOK_S, initial_delay=LOOK_S, registry=registry)(kept)
    kopf.on.delete(GROUP, VERSION, plural, id="remove", when=_is_deleted, registry=registry)(removed)


def _is_deleted(spec: Spec, **_given: Any) -> bool:
    """Whether the resource takes with it what it stands for."""
    return bool(spec["deletion"] != "Keep")
