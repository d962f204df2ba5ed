"""What must hold for every manifest here, beyond what a schema can say. Pure functions from objects to problems."""

import re
from collections.abc import Iterator
from typing import Any

from sluice_k8s.manifests import NAMESPACE, Manifest, containers, name_of, pods, settings_of

DRIVER_MANAGED = "ConfigMap/"
"""Pods from templates in config maps get image, CPU and memory from their service, and have no probes."""

_ONLY_GROUP = 0o440

_POD_NAME = "statefulset.kubernetes.io/pod-name"
"""A label that Kubernetes gives."""

_STANDS_FOR = re.compile(r"(?<!\$)\$\(([\w.-]+)\)")
"""`$(NAME)`, which Kubernetes replaces by a variable; `$$(NAME)` stays a text."""


def problems(manifests: list[Manifest]) -> list[str]:
    """Return what is wrong with the objects of one overlay."""
    return [
        *(problem for name, pod in pods(manifests) for problem in _pod(name, pod)),
        *_stores(manifests),
        *_service_accounts(manifests),
        *_selectors(manifests),
        *_replicas(manifests),
        *_disruption(manifests),
        *_references(manifests),
        *_variables(manifests),
        *_mounted_secrets(manifests),
        *_isolation(manifests),
        *_gateway(manifests),
    ]


_OURS = re.compile(rf"\.{NAMESPACE}(?=$|[:/]|\.svc\b)")


def left_behind(manifests: list[Manifest]) -> list[str]:
    """Return what of an overlay for another namespace still names ours."""
    found = []
    for manifest in manifests:
        metadata = manifest["metadata"]
        named = metadata["name"] if manifest["kind"] == "Namespace" else metadata.get("namespace")
        if named == NAMESPACE:
            found.append(f"{name_of(manifest)}: is in the namespace {NAMESPACE}")
        found += [f"{name_of(manifest)}: says {text}" for text in _texts(manifest) if _OURS.search(text)]
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts(inner)


def _pod(name: str, pod: Manifest) -> Iterator[str]:
    spec = pod["spec"]
    context = spec.get("securityContext", {})
    if not (context.get("runAsNonRoot") and context.get("runAsUser", 0) > 0):
        yield f"{name}: may run as root"
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield f"{name}: has no seccomp profile"
    if "automountServiceAccountToken" not in spec:
        yield f"{name}: does not say whether it gets a service account's token"
    if spec.get("enableServiceLinks") is not False:
        yield f"{name}: gets an environment variable for every Service"
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(key):
            yield f"{name}: {key}"
    if any("hostPath" in volume for volume in spec.get("volumes", [])):
        yield f"{name}: mounts a folder of the node"
    yield from (
        problem for container in containers(pod) for problem in _hardening(f"{name}/{container['name']}", container)
    )
    if not name.startswith(DRIVER_MANAGED):
        if spec.get("terminationGracePeriodSeconds", 0) <= _pre_stop_s(pod):
            yield f"{name}: no time is left to end in"
        for container in containers(pod):
            yield from _resources(f"{name}/{container['name']}", container)
        for container in spec["containers"] if spec.get("restartPolicy") != "Never" else ():
            yield from _probes(f"{name}/{container['name']}", container)


def _pre_stop_s(pod: Manifest) -> int:
    pauses = (container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}) for container in containers(pod))
    return max(int(pause.get("seconds", 0)) for pause in pauses)


def _hardening(name: str, container: Manifest) -> Iterator[str]:
    context = container.get("securityContext", {})
    if context.get("readOnlyRootFilesystem") is not True:
        yield f"{name}: may write to its root file system"
    if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
        yield f"{name}: may gain privileges"
    if context.get("capabilities") != {"drop": ["ALL"]}:
        yield f"{name}: keeps capabilities"
    if "/tmp" not in {mount["mountPath"] for mount in container.get("volumeMounts", [])}:
        yield f"{name}: has no place for temporary files"


def _resources(name: str, container: Manifest) -> Iterator[str]:
    image, _, tag = container["image"].rpartition(":")
    if not image or tag == "latest":
        yield f"{name}: the image {container['image']} says no version"
    resources = container.get("resources", {})
    if {"cpu", "memory"} - resources.get("requests", {}).keys():
        yield f"{name}: requests no CPU or no memory"
    if "memory" not in resources.get("limits", {}):
        yield f"{name}: has no limit on memory"
    if "cpu" in resources.get("limits", {}):
        yield f"{name}: is throttled, and would lose its sessions"


def _probes(name: str, container: Manifest) -> Iterator[str]:
    ports = {port["name"] for port in container.get("ports", [])}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        if probe not in container:
            yield f"{name}: has no {probe}"
            continue
        ask = container[probe].get("httpGet") or container[probe].get("tcpSocket") or {}
        if ask.get("port") not in ports:
            yield f"{name}: {probe} asks at a port that it does not name"
        wanted = "/readyz" if probe == "readinessProbe" else "/livez"
        if "httpGet" in container[probe] and ask["path"] != wanted:
            yield f"{name}: {probe} asks for {ask['path']}"
        if "httpGet" in container[probe] and ask.get("scheme", "HTTP") != _scheme(container):
            yield f"{name}: {probe} does not speak {_scheme(container)}"


def _scheme(container: Manifest) -> str:
    """What a service speaks where it listens."""
    is_tls = any(variable["name"] == "SLUICE_TLS_CERTIFICATE" for variable in container.get("env", []))
    return "HTTPS" if is_tls else "HTTP"


def _stores(manifests: list[Manifest]) -> Iterator[str]:
    """Clients remember where a store is. A pod that replaces one has another address, and no name until it is there."""
    selectors = {m["metadata"]["name"]: m["spec"].get("selector") for m in manifests if m["kind"] == "Service"}
    for manifest in manifests:
        if manifest["kind"] != "StatefulSet":
            continue
        if any("=$(POD_NAME).$(NAMESPACE).svc" in text for text in _texts(manifest)):
            for pod in _pod_names(manifest):
                if selectors.get(pod) != {_POD_NAME: pod}:
                    yield f"{name_of(manifest)}: {pod} publishes a name that no Service has"
        for container in containers(manifest["spec"]["template"]):
            for variable in container.get("env", []):
                if "podIP" in variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath", ""):
                    yield f"{name_of(manifest)}: knows the address of its pod, and could publish it"


def _pod_names(stateful_set: Manifest) -> list[str]:
    return [f"{stateful_set['metadata']['name']}-{number}" for number in range(stateful_set["spec"]["replicas"])]


def _service_accounts(manifests: list[Manifest]) -> Iterator[str]:
    for manifest in manifests:
        if manifest["kind"] == "ServiceAccount" and manifest.get("automountServiceAccountToken") is not False:
            yield f"{name_of(manifest)}: gives its token to every pod"
    bound = {
        subject["name"]
        for manifest in manifests
        if manifest["kind"] == "RoleBinding"
        for subject in manifest["subjects"]
    }
    for name, pod in pods(manifests):
        if pod["spec"].get("automountServiceAccountToken") and pod["spec"].get("serviceAccountName") not in bound:
            yield f"{name}: gets a token without a role"


def _selectors(manifests: list[Manifest]) -> Iterator[str]:
    labels = [pod["metadata"]["labels"] for _, pod in pods(manifests)]
    labels += [{_POD_NAME: pod} for m in manifests if m["kind"] == "StatefulSet" for pod in _pod_names(m)]
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        selector = spec.get("selector") or spec.get("podSelector") or {}
        wanted = selector.get("matchLabels", {} if "matchExpressions" in selector else selector)
        if not any(wanted.items() <= have.items() for have in labels):
            yield f"{name_of(manifest)}: selects no pod"
        for expression in selector.get("matchExpressions", []):
            for value in expression["values"]:
                if not any(have.get(expression["key"]) == value for have in labels):
                    yield f"{name_of(manifest)}: selects no pod by {value}"


def _replicas(manifests: list[Manifest]) -> Iterator[str]:
    """One scaler for a workload, which alone says the number, and no more instances than there are partitions."""
    partitions = int(settings_of(manifests)["SLUICE_PARTITIONS"])
    workloads = {name_of(m).partition("/")[2]: m for m in manifests if m["kind"] == "Deployment"}
    scaled: set[str] = set()
    for manifest in manifests:
        if manifest["kind"] not in ("ScaledObject", "HorizontalPodAutoscaler"):
            continue
        name, target = name_of(manifest), manifest["spec"]["scaleTargetRef"]["name"]
        if target in scaled:
            yield f"{name}: {target} has a scaler already"
        scaled.add(target)
        if target not in workloads:
            yield f"{name}: there is no {target}"
        elif "replicas" in workloads[target]["spec"]:
            yield f"{name}: {target} has a number of its own"
        if manifest["kind"] == "ScaledObject" and manifest["spec"]["maxReplicaCount"] != partitions:
            yield f"{name}: as many as there are partitions may work, {partitions}"
    for name, workload in workloads.items():
        if name not in scaled and "replicas" not in workload["spec"]:
            yield f"{name}: no number of replicas"


def _disruption(manifests: list[Manifest]) -> Iterator[str]:
    budgets = {m["metadata"]["name"] for m in manifests if m["kind"] == "PodDisruptionBudget"}
    for manifest in manifests:
        if manifest["kind"] == "Deployment" and manifest["metadata"]["name"] not in budgets:
            yield f"{name_of(manifest)}: has no disruption budget"


def _references(manifests: list[Manifest]) -> Iterator[str]:
    """What pods mount and read exists under that name, generated suffixes included."""
    there = {name_of(manifest) for manifest in manifests}
    for name, pod in pods(manifests):
        spec = pod["spec"]
        wanted = {f"ServiceAccount/{spec['serviceAccountName']}"} if "serviceAccountName" in spec else set()
        for container in containers(pod):
            for source in container.get("envFrom", []):
                wanted |= {f"ConfigMap/{source['configMapRef']['name']}"} if "configMapRef" in source else set()
                wanted |= {f"Secret/{source['secretRef']['name']}"} if "secretRef" in source else set()
        for volume in spec.get("volumes", []):
            if "configMap" in volume:
                wanted.add(f"ConfigMap/{volume['configMap']['name']}")
            if "persistentVolumeClaim" in volume:
                wanted.add(f"PersistentVolumeClaim/{volume['persistentVolumeClaim']['claimName']}")
        yield from (f"{name}: there is no {missing}" for missing in sorted(wanted - there))


def _variables(manifests: list[Manifest]) -> Iterator[str]:
    """Variables that others are made of come earlier: Kubernetes reads the list once and leaves as text what it does
    not know yet."""
    shared = {name_of(m): set(m.get("data") or {}) for m in manifests if m["kind"] in ("ConfigMap", "Secret")}
    for name, pod in pods(manifests):
        for container in containers(pod):
            where, known = f"{name}/{container['name']}", set[str]()
            for source in container.get("envFrom", []):
                for kind, reference in (("ConfigMap", "configMapRef"), ("Secret", "secretRef")):
                    known |= shared.get(f"{kind}/{source[reference]['name']}", set()) if reference in source else set()
            for variable in container.get("env", []):
                wanted = set(_STANDS_FOR.findall(variable.get("value") or ""))
                for missing in sorted(wanted - known):
                    yield f"{where}: {variable['name']} needs {missing}, which does not come before it"
                known.add(variable["name"])
            words = [*container.get("command", []), *container.get("args", [])]
            for missing in sorted({found for word in words for found in _STANDS_FOR.findall(word)} - known):
                yield f"{where}: is called with {missing}, which it is not given"


def _mounted_secrets(manifests: list[Manifest]) -> Iterator[str]:
    """Secrets are folders that only the pod's user reads, and that follow them. What a setting names is there."""
    for name, pod in pods(manifests):
        secrets = {v["name"]: v["secret"] for v in pod["spec"].get("volumes", []) if "secret" in v}
        for volume, secret in secrets.items():
            if secret.get("defaultMode") != _ONLY_GROUP:
                yield f"{name}: {volume} may be read by any user"
        for container in containers(pod):
            mounts = container.get("volumeMounts", [])
            for mount in mounts:
                if mount["name"] in secrets and ("subPath" in mount or not mount.get("readOnly")):
                    yield f"{name}: {mount['name']} is not mounted as a folder that is only read"
            folders = [f"{mount['mountPath']}/" for mount in mounts]
            for variable in container.get("env", []):
                path = variable.get("value") or ""
                if path.startswith("/etc/") and not path.startswith(tuple(folders)):
                    yield f"{name}: {variable['name']} names a file that is not mounted"


def _isolation(manifests: list[Manifest]) -> Iterator[str]:
    policies = {m["metadata"]["name"]: m["spec"] for m in manifests if m["kind"] == "NetworkPolicy"}
    if policies.get("default-deny") != {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}:
        yield "there is no policy that denies everything else"
    for name, spec in policies.items():
        if any(not rule.get("ports") for rule in (*spec.get("ingress", []), *spec.get("egress", []))):
            yield f"NetworkPolicy/{name}: opens every port"
        if name != "default-deny" and not spec["podSelector"] and "Ingress" in spec["policyTypes"]:
            yield f"NetworkPolicy/{name}: lets connect to every pod"


CALLED = ("api-gateway", "console")
"""What callers connect to."""
ANYWHERE = ("0.0.0.0/0", "::/0")


def _gateway(manifests: list[Manifest]) -> Iterator[str]:
    """Only pods by label, and addresses, may connect, by no name of their own; and each rule opens gRPC or REST."""
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        if manifest["kind"] != "NetworkPolicy" or not any(_selects(spec["podSelector"], name) for name in CALLED):
            continue
        for rule in spec.get("ingress", []):
            if len(rule.get("ports", [])) != 1:
                yield f"{name_of(manifest)}: opens more than one port to callers"
            if not rule.get("from") or any(map(_is_anyone, rule["from"])):
                yield f"{name_of(manifest)}: lets anyone connect"


def _selects(selector: Manifest, name: str) -> bool:
    key, expressions = "app.kubernetes.io/name", selector.get("matchExpressions", [])
    named = selector.get("matchLabels", {}).get(key) == name
    return not selector or named or any(one["key"] == key and name in one["values"] for one in expressions)


def _is_anyone(peer: Manifest) -> bool:
    if "ipBlock" in peer:
        return peer["ipBlock"]["cidr"] in ANYWHERE
    return not (peer.get("podSelector") or {}).get("matchLabels")
