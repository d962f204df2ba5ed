"""The Helm chart, made of what kustomize makes: each component is left out once, and what is missing then is its part.

Of every object all renderings are laid over each other. What all have is written as it is; what is missing where a
component is left out stands under a condition, that the component is chosen. So the chart has no second description of
anything. Two components that say the same field cannot be distinguished that way: the address that the gateway
publishes is the one such field, and is written here.
"""

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
import textwrap
from base64 import b64decode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from sluice_k8s import rules
from sluice_k8s.manifests import FOLDER, SOURCES, Manifest, RenderError, digest, name_of, objects, render

CHART = FOLDER.parent / "helm" / "sluice"
COMPONENTS = {
    "scaling": "scaling",
    "customResources": "custom-resources",
    "secured": "secured",
    "kafkaConf": "kafka-conf",
    "kafkaUsers": "kafka-users",
    "certManager": "cert-manager",
    "openidConnect": "openid-connect",
    "externalClients": "external-clients",
    "ingress": "ingress",
    "gatewayRoutes": "gateway-routes",
    "executors": "executors",
    "commandLine": "command-line",
    "backUp": "back-up",
    "traces": "traces",
}
"""Their names in the values, and their folders."""
PRODUCTION = ("scaling", "secured", "kafkaConf")
"""Of the production overlay."""
NAMESPACE = "namespace-of-the-release"
HOST, ISSUER = "said-by-the-overlay.invalid", "https://said-by-the-overlay.invalid"
GATEWAY_NAMESPACE = "of-the-overlay"
_SUFFIX = re.compile(r"\b(sluice-settings|sluice-secrets|spark-executor)-[a-z0-9]{10}\b")
_LIMIT_S = 60.0
CHECKSUM = "checksum/settings"
_GENERATED = "# Made by `make k8s-render` from deploy/k8s, with the digest "

Renderings = dict[str | None, Any]
"""A value by the component that is left out; None: with all of them. It is missing where that has no such value."""


def built(kustomize: Path, components: Iterable[str], namespace: str = NAMESPACE) -> list[Manifest]:
    """Return the objects of the base with these components."""
    chosen = set(components)
    said: dict[str, Any] = {
        "namespace": namespace,
        "resources": ["../../base"],
        "components": [f"../../components/{folder}" for name, folder in COMPONENTS.items() if name in chosen],
        "labels": [{"pairs": {"app.kubernetes.io/part-of": "sluice"}, "includeTemplates": True}],
        "patches": [],
        "replacements": [],
    }
    site = yaml.safe_load((FOLDER / "overlays" / "site" / "kustomization.yaml").read_text())
    for kind, component in (("Certificate", "certManager"), ("Deployment", "executors")):
        if component in chosen:
            said["replacements"] += [r for r in site["replacements"] if r["targets"][0]["select"]["kind"] == kind]
    if {"certManager", "externalClients"} <= chosen:
        patch = [{"op": "add", "path": "/spec/dnsNames/-", "value": HOST}]
        said["patches"].append({"target": {"kind": "Certificate"}, "patch": json.dumps(patch)})
    with tempfile.TemporaryDirectory(prefix="sluice-k8s-") as copy:
        for name in SOURCES:
            shutil.copytree(FOLDER / name, Path(copy, name))
        (folder := Path(copy, "overlays", "chart")).mkdir()
        (folder / "kustomization.yaml").write_text(json.dumps(said))
        text = render(kustomize, "chart", Path(copy))
    return [manifest for manifest in objects(_SUFFIX.sub(r"\1", text)) if manifest["kind"] != "Namespace"]


def header() -> str:
    """Return the first line of what is made, which stands for the sources and for this file."""
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:16]
    return f"{_GENERATED}{digest()}-{own}; not to be edited.\n"


def is_current() -> bool:
    """Whether what is kept was made of these sources by this file."""
    made = (CHART / "templates" / "sluice.yaml", CHART / "values.yaml")
    return all(path.read_text().startswith(header()) for path in made)


def keep(kustomize: Path) -> None:
    """Write templates, values and the schema of values."""
    every = {left_out: built(kustomize, set(COMPONENTS) - {left_out}) for left_out in (None, *COMPONENTS)}
    by_name = {left_out: {name_of(m): m for m in manifests} for left_out, manifests in every.items()}
    values = _values({name_of(m): m for m in built(kustomize, ())})
    (CHART / "templates").mkdir(parents=True, exist_ok=True)
    names = _merged(list(there) for there in by_name.values())
    lines = [line for name in names for line in _object(name, _of(by_name, name))]
    (CHART / "templates" / "sluice.yaml").write_text(header() + "\n".join(lines) + "\n")
    (CHART / "values.yaml").write_text(header() + _documented(values))
    (CHART / "values.schema.json").write_text(json.dumps(_schema(values, ""), indent=2) + "\n")


def _of(values: Renderings, key: Any) -> Renderings:
    return {left_out: value[key] for left_out, value in values.items() if key in value}


def _object(name: str, values: Renderings) -> list[str]:
    return _under(_conditions(values, (None, *COMPONENTS)), ["---", *_map(values, 0, (name,))])


def _conditions(values: Renderings, parents: Iterable[str | None]) -> str:
    """When something is there, of what was there in all of `parents`."""
    missing = [component for component in parents if component not in values]
    if None not in missing:
        wanted = [f".Values.components.{component}" for component in missing]
        return f"and {' '.join(wanted)}" if len(wanted) > 1 else "".join(wanted)
    others = [f"(not .Values.components.{component})" for component in values]
    return f"or {' '.join(others)}" if len(others) > 1 else others[0].strip("()")


def _under(condition: str, lines: list[str]) -> list[str]:
    return [f"{{{{- if {condition} }}}}", *lines, "{{- end }}"] if condition else lines


def _map(values: Renderings, indent: int, path: tuple[str, ...]) -> list[str]:
    found = []
    for key in _merged(list(value) for value in values.values()):
        there = _of(values, key)
        lines = _said_here(there, indent, (*path, key)) or _field(f"{key}:", there, indent, (*path, key))
        found += _under(_conditions(there, values), lines)
    return found + _added(indent, path)


def _merged(lists: Iterable[list[Any]]) -> list[Any]:
    """All that is in any of them, each behind what it comes behind."""
    found: list[Any] = []
    for one in lists:
        at = 0
        for item in one:
            if item in found:
                at = found.index(item) + 1
            else:
                found.insert(at, item)
                at += 1
    return found


def _field(name: str, values: Renderings, indent: int, path: tuple[str, ...]) -> list[str]:
    pad = " " * indent
    every = list(values.values())
    if all(isinstance(value, dict) and value for value in every):
        return [f"{pad}{name}", *_map(values, indent + 2, path)]
    if all(isinstance(value, list) and value for value in every):
        return [f"{pad}{name}", *_list(values, indent + 2, path)]
    full = values.get(None, every[0])
    lines = _scalar(pad, name, full, path)
    for component, value in values.items():
        if value != full:
            other = _scalar(pad, name, value, path)
            lines = [f"{{{{- if not .Values.components.{component} }}}}", *other, "{{- else }}", *lines, "{{- end }}"]
    return lines


def _list(values: Renderings, indent: int, path: tuple[str, ...]) -> list[str]:
    keyed = {left_out: dict(_keyed(items, values)) for left_out, items in values.items()}
    found, text = [], json.dumps(list(values.values()))
    # Of variables those first that others are made of.
    for key in sorted(_merged(list(items) for items in keyed.values()), key=lambda key: f"$({key})" not in text):
        there = _of(keyed, key)
        inner = (*path, str(key))
        if all(isinstance(item, dict) for item in there.values()):
            lines = _said_here(there, indent, inner) or _map(there, indent + 2, inner)
            first = lines[0]
            if not first.startswith(" " * (indent + 2)):
                lines = [f"{' ' * indent}-", *lines] if first.startswith("{{") else lines
            else:
                lines = [f"{' ' * indent}- {first.lstrip()}", *lines[1:]]
        else:
            lines = _field("-", there, indent, inner)
        found += _under(_conditions(there, keyed), lines)
    return found


def _keyed(items: list[Any], values: Renderings) -> Iterator[tuple[Any, Any]]:
    """Items by name; without one by place, if all have as many; else each is its own key."""
    named = all(map(_are_named, values.values()))
    is_even = len({len(one) for one in values.values()}) == 1
    for number, item in enumerate(items):
        yield (item["name"] if named else number if is_even else json.dumps(item)), item


def _are_named(items: list[Any]) -> bool:
    names = {item.get("name") for item in items if isinstance(item, dict)}
    return None not in names and len(names) == len(items)


_NAMED_HERE = {
    "issuerRef": "certManager.issuer",
    "ingressClassName": "ingress.className",
    "parentRefs": "gatewayRoutes.gateway",
}
"""Where the name that the overlay says is another one than that of the gateways outside."""


def _scalar(pad: str, name: str, value: Any, path: tuple[str, ...]) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        style = "|" if value.endswith("\n") else "|-"
        return [f"{pad}{name} {style}", *(f"{pad}  {line}".rstrip() for line in value.rstrip("\n").split("\n"))]
    text = json.dumps(value)
    host = next((said for field, said in _NAMED_HERE.items() if field in path), "externalClients.host")
    for what, said in (
        (NAMESPACE, ".Release.Namespace"),
        (ISSUER, ".Values.openidConnect.issuer"),
        (HOST, f".Values.{host}"),
        (GATEWAY_NAMESPACE, ".Values.gatewayRoutes.namespace"),
        ("192.0.2.0/32", ".Values.externalClients.addresses"),
    ):
        text = text.replace(what, f"{{{{ {said} }}}}")
    text = re.sub(r"^\"sluice/([a-z-]+):.*\"$", r'"{{ .Values.image.prefix }}/\1:{{ .Values.image.version }}"', text)
    return [f"{pad}{name} {text}"]


def _said_here(values: Renderings, indent: int, path: tuple[str, ...]) -> list[str]:
    """The lines of a field that the values say."""
    pad = " " * indent
    service = path[0].partition("/")[2]
    match path[1:]:
        case ("data",) if service == "sluice-settings":
            each = "{{- range $name, $value := .Values.settings }}"
            return [f"{pad}data:", each, f"{pad}  {{{{ $name }}}}: {{{{ $value | quote }}}}", "{{- end }}"]
        case ("data",) if service == "sluice-secrets":
            each = "{{- range $name, $value := .Values.secrets }}"
            return [f"{pad}data:", each, f"{pad}  {{{{ $name }}}}: {{{{ $value | b64enc | quote }}}}", "{{- end }}"]
        case ("spec", "replicas") if not _is_single(values):
            return [f'{pad}replicas: {{{{ (index .Values.services "{service}").replicas }}}}']
        case ("spec", "template", "spec", "containers", "service", "resources"):
            said = f'{{{{- toYaml (index .Values.services "{service}").resources | nindent {indent + 2} }}}}'
            return [f"{pad}resources:", f"{pad}  {said}"]
        case ("spec", "maxReplicaCount"):
            return [f"{pad}maxReplicaCount: {{{{ .Values.settings.SLUICE_PARTITIONS }}}}"]
        case ("metadata", "labels", "strimzi.io/cluster"):
            return [f'{pad}strimzi.io/cluster: "{{{{ .Values.kafkaUsers.cluster }}}}"']
        case ("metadata", "annotations") if path[0].startswith("Ingress/"):
            said = f"{{{{- toYaml .Values.ingress.annotations.{service} | nindent {indent + 2} }}}}"
            return [f"{pad}annotations:", f"{pad}  {said}"]
        case (*_, "env", "SLUICE_GRPC_PUBLISHED_HOST") if HOST in json.dumps(list(values.values())):
            return _published(pad)
    return []


def _is_single(values: Renderings) -> bool:
    """Whether there must be one of it: then its number is none of the values."""
    return all(value == 1 for value in values.values())


def _published(pad: str) -> list[str]:
    return [
        f"{pad}- name: SLUICE_GRPC_PUBLISHED_HOST",
        "{{- if .Values.components.externalClients }}",
        f'{pad}  value: "{{{{ .Values.externalClients.host }}}}"',
        "{{- else if .Values.components.secured }}",
        f"{pad}  value: api-gateway-instances.$(NAMESPACE).svc",
        "{{- else }}",
        f"{pad}  valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}",
        "{{- end }}",
    ]


def _added(indent: int, path: tuple[str, ...]) -> list[str]:
    """What a chart can have and a rendering cannot: pods follow the settings, which keep their name."""
    pad = " " * indent
    if path[1:] == ("spec", "template", "metadata", "annotations"):
        both = '{{ printf "%s%s" (toJson .Values.settings) (toJson .Values.secrets) | sha256sum }}'
        return [f"{pad}{CHECKSUM}: {both}"]
    if path[0].startswith("PersistentVolumeClaim/") and path[1:] == ("spec",):
        return ["{{- with .Values.storageClass }}", f"{pad}storageClassName: {{{{ . | quote }}}}", "{{- end }}"]
    return []


def _annotations() -> dict[str, Any]:
    text = (FOLDER / "components" / COMPONENTS["ingress"] / "ingress.yaml").read_text()
    return {m["metadata"]["name"]: m["metadata"]["annotations"] for m in objects(text)}


def _values(base: dict[str, Manifest]) -> dict[str, Any]:
    """The values, with what the base says."""
    services = {}
    for manifest in base.values():
        if manifest["kind"] == "Deployment":
            (container,) = manifest["spec"]["template"]["spec"]["containers"]
            number = {} if manifest["spec"]["replicas"] == 1 else {"replicas": manifest["spec"]["replicas"]}
            services[manifest["metadata"]["name"]] = {**number, "resources": container["resources"]}
            prefix, version = container["image"].split(":")[0].rpartition("/")[0], container["image"].split(":")[1]
    secrets = base["Secret/sluice-secrets"]["data"]
    return {
        "image": {"prefix": prefix, "version": version},
        "settings": base["ConfigMap/sluice-settings"]["data"],
        "secrets": {name: b64decode(value).decode() for name, value in secrets.items()},
        "components": dict.fromkeys(COMPONENTS, False),
        "externalClients": {"host": "sluice.example.com", "addresses": "203.0.113.0/24"},
        "ingress": {"className": "nginx", "annotations": _annotations()},
        "gatewayRoutes": {"gateway": "gateway", "namespace": "gateway-system"},
        "openidConnect": {"issuer": "https://keycloak.example.com/realms/pravega"},
        "certManager": {"issuer": "issuer"},
        "kafkaUsers": {"cluster": "kafka"},
        "storageClass": "",
        "monitoring": {"podMonitors": False, "rules": False, "dashboard": False},
        "services": services,
    }


_SAID = {
    "image": "Where images come from: PREFIX/api-gateway:VERSION and so on.",
    "settings": "What all services share (docs/operations.md). SLUICE_PARTITIONS, SLUICE_CONTAINER_COUNT and "
    "SLUICE_CLUSTER_NAME are fixed for the life of the data. More may be added, as SLUICE_OTLP_ENDPOINT with `traces`.",
    "secrets": "Addresses that may hold a password. With `secured`: "
    "rediss://HOST:6379/0?ssl_ca_certs=/etc/sluice-authorities/ca.crt.",
    "components": "What of deploy/k8s/components is wanted; docs/operations.md says what each is, and which Secrets to "
    "make. `secured` goes with `kafkaConf`, `ingress` and `gatewayRoutes` go with `secured`, `backUp` with "
    "`commandLine`; the production overlay has scaling, secured and kafkaConf.",
    "externalClients": "For externalClients, ingress, gatewayRoutes: the name by which clients outside reach gateways. "
    "REST is at `console.` and this name. And where the load balancer's clients connect from.",
    "ingress": "Of ingress: the class, and its settings for the services behind, which speak TLS with `secured`.",
    "gatewayRoutes": "Of gatewayRoutes: the Gateway that they belong to.",
    "openidConnect": "Of openidConnect: who issues tokens.",
    "certManager": "Of certManager: the ClusterIssuer of the certificate.",
    "kafkaUsers": "Of kafkaUsers: Strimzi's name of the Kafka cluster.",
    "storageClass": "Of volumes; the cluster's own if empty. With `executors` one that several nodes can mount.",
    "monitoring": "For Prometheus' operator PodMonitors and a PrometheusRule, for Grafana a ConfigMap: the dashboard.",
    "services": "Of each service. `replicas` counts where `scaling` does not say the number.",
}


def _documented(values: dict[str, Any]) -> str:
    return "\n".join(
        textwrap.fill(_SAID[key], 118, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
        + f"\n{yaml.safe_dump({key: value}, sort_keys=False)}"
        for key, value in values.items()
    )


def _schema(value: Any, key: str) -> dict[str, Any]:
    """Of a value as it is: nothing else is allowed, but more settings, and any resources."""
    if key in ("resources", "annotations"):
        return {"type": "object"}
    if key in ("settings", "secrets"):
        named = {"^SLUICE_[A-Z_]+$": {"type": ["string", "number", "boolean"]}}
        return {"type": "object", "patternProperties": named, "additionalProperties": False, "required": list(value)}
    if isinstance(value, dict):
        inner = {name: _schema(one, name) for name, one in value.items()}
        more = {"properties": {**inner, "global": {"type": "object"}}} if not key else {"properties": inner}
        return {"type": "object", **more, "additionalProperties": False}
    if isinstance(value, bool):
        return {"type": "boolean"}
    return {"type": "integer", "minimum": 1} if isinstance(value, int) else {"type": "string"}


def problems(helm: Path, kustomize: Path, components: Iterable[str]) -> list[str]:
    """Return where the chart makes other objects than kustomize of the same components, or breaks a rule."""
    chosen = sorted(components)
    namespace = "elsewhere"
    wanted = {name_of(m): m for m in built(kustomize, chosen, namespace)}
    said = [f"--set=components.{component}=true" for component in chosen]
    said += [f"--set=externalClients.host={HOST}", f"--set=openidConnect.issuer={ISSUER}"]
    said += [f"--set=certManager.issuer={HOST}", "--set=externalClients.addresses=192.0.2.0/32"]
    said += [f"--set=ingress.className={HOST}", f"--set=gatewayRoutes.gateway={HOST}"]
    said += [f"--set=gatewayRoutes.namespace={GATEWAY_NAMESPACE}"]
    said += ["--set=settings.SLUICE_OTLP_ENDPOINT=http://collector.monitoring:4318"] if "traces" in chosen else []
    made = {name_of(m): m for m in objects(template(helm, namespace, said)) if "helm-test" not in name_of(m)}
    differ = [
        f"{name} is another one than kustomize's"
        for name in sorted(wanted.keys() | made.keys())
        if _compared(wanted.get(name)) != _compared(made.get(name))
    ]
    found = [*differ, *rules.problems(list(made.values())), *rules.left_behind(list(made.values()))]
    return [f"chart with {', '.join(chosen) or 'no component'}: {problem}" for problem in found]


def everything(helm: Path) -> list[Manifest]:
    """Return the objects of the chart with all that can be chosen, in our namespace. Raises RenderError."""
    namespace = yaml.safe_load((FOLDER / "base" / "namespace.yaml").read_text())
    chosen = yaml.safe_load((CHART / "values.yaml").read_text())
    said = [f"--set={part}.{name}=true" for part in ("components", "monitoring") for name in chosen[part]]
    return [namespace, *objects(template(helm, namespace["metadata"]["name"], said))]


def template(helm: Path, namespace: str, said: Iterable[str]) -> str:
    """Return what helm makes of the chart. Raises RenderError."""
    command = [str(helm), "template", "sluice", str(CHART), "--namespace", namespace, "--kube-version", "1.34", *said]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if done.returncode != 0:
        raise RenderError(f"helm: {done.stderr}")
    return done.stdout


def _compared(value: Any) -> Any:
    """Without the checksum of the settings, and with variables in one order: the rules see to theirs."""
    if isinstance(value, list):
        return [_compared(item) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: _compared(item) for key, item in value.items() if key != CHECKSUM}
    return {**inner, "env": sorted(inner["env"], key=lambda item: item["name"])} if "env" in inner else inner
