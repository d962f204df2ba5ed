"""Manifests against schemas: Kubernetes' own from the package kubernetes-validate, others from the folder `schemas`.

Both are strict: an unknown field is an error, as it is with the API server.
"""

import functools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

from sluice_k8s import tools
from sluice_k8s.manifests import FOLDER, Manifest, name_of

VERSION = "1.34"
"""Of Kubernetes; the API server of `make k8s-check` is of this version, too."""


def problems(manifest: Manifest) -> list[str]:
    """Return what is wrong with one object."""
    group = manifest["apiVersion"].partition("/")[0]
    try:
        if "." in group and not group.endswith("k8s.io"):
            _validator(manifest["apiVersion"], manifest["kind"]).validate(manifest)
        else:
            kubernetes_validate.validate(manifest, VERSION, strict=True)
    except (kubernetes_validate.ValidationError, jsonschema.ValidationError) as error:
        return [f"{name_of(manifest)}: {error.message}"]
    except kubernetes_validate.SchemaNotFoundError:
        return [f"{name_of(manifest)}: Kubernetes {VERSION} has no {manifest['kind']} of {manifest['apiVersion']}"]
    return []


def definitions() -> list[Manifest]:
    """Return the custom resource definitions that are kept here."""
    return _read(sorted((FOLDER / "schemas").glob("*.yaml")))


_FETCHED = {
    "github.com/prometheus-operator/prometheus-operator": (
        "example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    "sigs.k8s.io/gateway-api": (
        "config/crd/standard/gateway.networking.k8s.io_backendtlspolicies.yaml",
        "config/crd/standard/gateway.networking.k8s.io_grpcroutes.yaml",
        "config/crd/standard/gateway.networking.k8s.io_httproutes.yaml",
    ),
}


def fetched() -> list[Manifest]:
    """Return those too large to be kept here: of what only the chart has, or only some sites. Raises ToolError."""
    folders = tools.downloaded("schemas")
    return _read(folders[module] / name for module, names in _FETCHED.items() for name in names)


def _read(paths: Iterable[Path]) -> list[Manifest]:
    return [yaml.load(path.read_text(), yaml.CSafeLoader) for path in paths]


@functools.cache
def _validator(api_version: str, kind: str) -> jsonschema.Draft202012Validator:
    group, _, version = api_version.partition("/")
    for definition in definitions():
        spec = definition["spec"]
        if spec["group"] == group and spec["names"]["kind"] == kind:
            (schema,) = (v["schema"]["openAPIV3Schema"] for v in spec["versions"] if v["name"] == version)
            return jsonschema.Draft202012Validator(_strict(schema, top=True))
    raise jsonschema.ValidationError(f"there is no definition of {kind} of {api_version} in {FOLDER / 'schemas'}")


def _strict(schema: Any, *, top: bool = False) -> Any:
    """The schema with unknown fields forbidden wherever fields are listed; metadata is the API server's own."""
    if isinstance(schema, list):
        return [_strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    strict = {key: _strict(value) for key, value in schema.items()}
    listed = isinstance(schema.get("properties"), dict) and schema.get("type") == "object"
    if listed and "additionalProperties" not in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        strict["additionalProperties"] = False
    if top:
        strict["properties"]["metadata"] = {"type": "object"}
    return strict
