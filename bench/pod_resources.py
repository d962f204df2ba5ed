"""A scope and a stream as resources, by kubectl, while the operator's pod is deleted."""

import json
from collections.abc import Mapping

from support.controller import controller, info, unique

from bench.pods import deleted, kubectl, tried
from harness import eventually


def stream_by_kubectl(address: str) -> None:
    """It is made, changed and deleted as the resources say, and the pod that comes next does what is left to do."""
    scope = unique("crd")
    stream = {"scope": scope, "stream": "s", "scaling": {"type": "fixed", "minSegments": 3}, "deletion": "Delete"}
    _apply("Scope", scope, {"scope": scope, "deletion": "DeleteAll"})
    _apply("Stream", f"{scope}.s", stream)
    kubectl("wait", "--for=condition=Ready", f"streams.sluice.io/{scope}.s", "--timeout=60s")
    with controller(address) as gateway:
        assert len(gateway.segments(scope, "s")) == 3
        deleted("custom-resources")
        _apply("Stream", f"{scope}.s", {**stream, "tags": ["changed"]})

        def tags() -> list[str]:
            return list(gateway.call("getStreamConfiguration", info(scope, "s")).tags.tag)

        eventually(lambda: tags() == ["changed"], 60.0, "the stream is what its resource says")
        kubectl("delete", f"streams.sluice.io/{scope}.s", f"scopes.sluice.io/{scope}", "--timeout=60s")
        assert scope not in gateway.scopes()


def _apply(kind: str, name: str, spec: Mapping[str, object]) -> None:
    resource = {"apiVersion": "sluice.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    applied = tried("apply", "--filename=-", given=json.dumps(resource))
    assert applied.returncode == 0, applied.stderr
