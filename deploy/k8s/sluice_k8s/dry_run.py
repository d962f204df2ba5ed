"""Manifests given to an API server as `kubectl apply --server-side --dry-run=server` would, and each pod they lead to.

A warning counts as a problem: that is how the API server reports what a namespace's security standard refuses later.
"""

import time
from collections.abc import Iterable
from typing import Any

import httpx

from sluice_k8s.manifests import Manifest, name_of, pods

_ESTABLISHED_S = 30.0
_LOOK_AGAIN_S = 0.1
_REAL = ("Namespace", "ServiceAccount")
"""Kinds that other objects need to be there, even for a dry run."""


class DryRunError(Exception):
    """The API server does not answer."""


class DryRun:
    """One API server that knows the custom resources of these definitions. Not to be shared between threads."""

    def __init__(self, client: httpx.Client, definitions: Iterable[Manifest]) -> None:
        self._client = client
        self._plurals: dict[str, dict[str, tuple[str, bool]]] = {}
        for definition in definitions:
            if problems := self.apply(definition, real=True):
                raise DryRunError("\n".join(problems))
            self._await_established(definition)

    def check(self, manifests: list[Manifest]) -> list[str]:
        """Return what the API server has against the objects of one overlay."""
        found = [p for m in manifests if m["kind"] in _REAL for p in self.apply(m, real=True)]
        found += [p for m in manifests if m["kind"] not in _REAL for p in self.apply(m, real=False)]
        (namespace,) = (m["metadata"]["name"] for m in manifests if m["kind"] == "Namespace")
        for name, pod in pods(manifests):
            found += self._create_pod(name, pod, namespace)
        return found

    def apply(self, manifest: Manifest, *, real: bool) -> list[str]:
        """Apply one object; return the problems."""
        plural, namespaced = self._resource(manifest["apiVersion"], manifest["kind"])
        metadata = manifest["metadata"]
        where = f"/namespaces/{metadata['namespace']}" if namespaced else ""
        response = self._client.patch(
            f"{_root(manifest['apiVersion'])}{where}/{plural}/{metadata['name']}",
            params=_parameters(real=real) | {"force": "true"},
            headers={"Content-Type": "application/apply-patch+yaml"},
            json=manifest,
        )
        return _problems(name_of(manifest), response)

    def _create_pod(self, name: str, template: Manifest, namespace: str) -> list[str]:
        spec: dict[str, Any] = template["spec"]
        # Of the pods that a driver makes, the driver says the image.
        filled = [{"image": "image:1", **container} for container in spec["containers"]]
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], "name": "pod", "namespace": namespace},
            "spec": {**spec, "containers": filled, **_volumes_of_claims(spec, filled)},
        }
        if "serviceAccountName" not in spec:
            self.apply(_default_account(namespace), real=True)
        response = self._client.post(f"/api/v1/namespaces/{namespace}/pods", params=_parameters(real=False), json=pod)
        return _problems(f"pod of {name}", response)

    def _resource(self, api_version: str, kind: str) -> tuple[str, bool]:
        """The name of a kind in paths, and whether its objects belong to namespaces."""
        if kind not in self._plurals.get(api_version, {}):
            response = self._client.get(_root(api_version))
            resources = response.json().get("resources", [])
            self._plurals[api_version] = {
                r["kind"]: (r["name"], r["namespaced"]) for r in resources if "/" not in r["name"]
            }
        try:
            return self._plurals[api_version][kind]
        except KeyError:
            raise DryRunError(f"the API server knows no {kind} of {api_version}") from None

    def _await_established(self, definition: Manifest) -> None:
        spec = definition["spec"]
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}"
        deadline = time.monotonic() + _ESTABLISHED_S
        while time.monotonic() < deadline:
            resources = self._client.get(path)
            names = {r["name"] for r in resources.json()["resources"]} if resources.is_success else set()
            # Listed a moment before it is served.
            if spec["names"]["plural"] in names and self._client.get(f"{path}/{spec['names']['plural']}").is_success:
                return
            time.sleep(_LOOK_AGAIN_S)
        raise DryRunError(f"{definition['metadata']['name']} is not served")


def _root(api_version: str) -> str:
    return f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"


def _parameters(*, real: bool) -> dict[str, str]:
    return {"fieldManager": "sluice-k8s-check", "fieldValidation": "Strict"} | ({} if real else {"dryRun": "All"})


def _problems(name: str, response: httpx.Response) -> list[str]:
    found = [f"{name}: warning: {warning}" for warning in response.headers.get_list("Warning")]
    if not response.is_success:
        found.append(f"{name}: {response.json().get('message', response.text)}")
    return found


def _default_account(namespace: str) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "default", "namespace": namespace},
    }


def _volumes_of_claims(spec: Manifest, containers: list[Manifest]) -> dict[str, list[Manifest]]:
    """The pod's volumes, with a stand-in for those that a StatefulSet adds from its templates of claims."""
    volumes = spec.get("volumes", [])
    named = {volume["name"] for volume in volumes}
    every = [*spec.get("initContainers", []), *containers]
    mounted = {mount["name"] for container in every for mount in container.get("volumeMounts", [])}
    return {"volumes": [*volumes, *({"name": name, "emptyDir": {}} for name in sorted(mounted - named))]}
