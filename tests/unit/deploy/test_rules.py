"""The rules for manifests find what they are there to find: each breach of one of them, made on a rendering that keeps
to all of them."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from sluice_k8s import manifests, rules, schemas

Breach = Callable[[dict[str, Any]], None]
SITE, DEV = (
    {manifests.name_of(manifest): manifest for manifest in manifests.objects(manifests.kept(overlay))}
    for overlay in ("site", "dev")
)


def pod(objects: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = objects["Deployment/api-gateway"]["spec"]["template"]["spec"]
    return spec


def container(objects: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = pod(objects)["containers"][0]
    return found


def volume(objects: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [each for each in pod(objects)["volumes"] if each["name"] == name]
    return found


def mount(objects: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = [each for each in container(objects)["volumeMounts"] if each["name"] == name]
    return found


def driver(objects: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = objects["Deployment/retention-spark"]["spec"]["template"]["spec"]["containers"][0]
    return found


def ingress(objects: dict[str, Any], policy: str) -> dict[str, Any]:
    (rule,) = objects[f"NetworkPolicy/{policy}"]["spec"]["ingress"]
    found: dict[str, Any] = rule
    return found


BREACHES: dict[str, Breach] = {
    "may run as root": lambda o: pod(o)["securityContext"].pop("runAsUser"),
    "has no seccomp profile": lambda o: pod(o)["securityContext"].pop("seccompProfile"),
    "does not say whether it gets": lambda o: pod(o).pop("automountServiceAccountToken"),
    "environment variable for every Service": lambda o: pod(o).pop("enableServiceLinks"),
    "hostNetwork": lambda o: pod(o).update(hostNetwork=True),
    "mounts a folder of the node": lambda o: pod(o)["volumes"].append({"name": "n", "hostPath": {"path": "/"}}),
    "no time is left": lambda o: pod(o).update(terminationGracePeriodSeconds=5),
    "may write to its root": lambda o: container(o)["securityContext"].pop("readOnlyRootFilesystem"),
    "may gain privileges": lambda o: container(o)["securityContext"].update(allowPrivilegeEscalation=True),
    "keeps capabilities": lambda o: container(o)["securityContext"]["capabilities"].update(add=["NET_ADMIN"]),
    "no place for temporary files": lambda o: container(o)["volumeMounts"].clear(),
    "says no version": lambda o: container(o).update(image="sluice/api-gateway"),
    "requests no CPU": lambda o: container(o)["resources"]["requests"].pop("cpu"),
    "no limit on memory": lambda o: container(o)["resources"].pop("limits"),
    "is throttled": lambda o: container(o)["resources"]["limits"].update(cpu="1"),
    "has no readinessProbe": lambda o: container(o).pop("readinessProbe"),
    "a port that it does not name": lambda o: container(o)["livenessProbe"]["httpGet"].update(port="web"),
    "asks for /readyz": lambda o: container(o)["livenessProbe"]["httpGet"].update(path="/readyz"),
    "does not speak HTTPS": lambda o: container(o)["livenessProbe"]["httpGet"].pop("scheme"),
    "tls may be read by any user": lambda o: volume(o, "tls")["secret"].pop("defaultMode"),
    "tls is not mounted as a folder": lambda o: mount(o, "tls").update(subPath="tls.key"),
    "SLUICE_TLS_KEY names a file that is not mounted": lambda o: mount(o, "tls").update(mountPath="/etc/tls"),
    "services-to-kafka: opens every port": lambda o: o["NetworkPolicy/services-to-kafka"]["spec"].update(egress=[{}]),
    "names: lets connect to every pod": lambda o: o["NetworkPolicy/names"]["spec"].update(policyTypes=["Ingress"]),
    "gives its token": lambda o: o["ServiceAccount/api-gateway"].update(automountServiceAccountToken=True),
    "a token without a role": lambda o: o.pop("RoleBinding/retention-spark"),
    "Service/api-gateway: selects no pod": lambda o: o["Service/api-gateway"]["spec"]["selector"].update(a="b"),
    "selects no pod by another": lambda o: o["NetworkPolicy/services-to-kafka"]["spec"]["podSelector"][
        "matchExpressions"
    ][0]["values"].append("another"),
    "as many as there are partitions": lambda o: o["ScaledObject/txn-manager"]["spec"].update(maxReplicaCount=17),
    "has a number of its own": lambda o: o["Deployment/txn-manager"]["spec"].update(replicas=2),
    "no number of replicas": lambda o: o.pop("ScaledObject/txn-manager"),
    "has a scaler already": lambda o: o["ScaledObject/txn-manager"]["spec"]["scaleTargetRef"].update(
        name="stream-workflows"
    ),
    "there is no cluster": lambda o: o["ScaledObject/txn-manager"]["spec"]["scaleTargetRef"].update(name="cluster"),
    "has no disruption budget": lambda o: o.pop("PodDisruptionBudget/api-gateway"),
    "there is no ServiceAccount/api-gateway": lambda o: o.pop("ServiceAccount/api-gateway"),
    "there is no PersistentVolumeClaim/retention-spark": lambda o: o.pop("PersistentVolumeClaim/retention-spark"),
    "SLUICE_SPARK_CONF needs SLUICE_INSTANCE, which does not come before it": lambda o: driver(o)["env"].sort(
        key=lambda variable: variable["name"] == "SLUICE_INSTANCE"
    ),
    "SLUICE_SPARK_CONF needs POD_IP": lambda o: driver(o).update(
        env=[variable for variable in driver(o)["env"] if variable["name"] != "POD_IP"]
    ),
    "is called with POD_IP, which it is not given": lambda o: container(o).update(args=["$(POD_IP)", "$$(TEXT)"]),
    "no policy that denies": lambda o: o.pop("NetworkPolicy/default-deny"),
    "clients-to-grpc: lets anyone connect": lambda o: ingress(o, "clients-to-grpc").pop("from"),
    "operators-to-rest: lets anyone connect": lambda o: ingress(o, "operators-to-rest")["from"][0].pop("podSelector"),
    "monitoring-to-services: lets anyone connect": lambda o: ingress(o, "monitoring-to-services")["from"].append(
        {"namespaceSelector": {}}
    ),
    "external-clients-to-grpc: lets anyone connect": lambda o: ingress(o, "external-clients-to-grpc")["from"][0][
        "ipBlock"
    ].update(cidr="0.0.0.0/0"),
    "clients-to-grpc: opens more than one port": lambda o: ingress(o, "clients-to-grpc")["ports"].append(
        {"protocol": "TCP", "port": "health"}
    ),
}


@pytest.mark.parametrize("problem", BREACHES)
def test_a_breach_is_found(problem: str) -> None:
    objects = copy.deepcopy(SITE)
    BREACHES[problem](objects)
    found = rules.problems(list(objects.values()))
    assert [line for line in found if problem in line], found


def test_a_store_that_knows_the_address_of_its_pod_is_found() -> None:
    store = copy.deepcopy(DEV["StatefulSet/segment-store"])
    of_pod = {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    store["spec"]["template"]["spec"]["containers"][0]["env"].append(of_pod)
    found = rules.problems([*DEV.values(), store])
    assert found == ["StatefulSet/segment-store: knows the address of its pod, and could publish it"]


def test_a_store_whose_name_goes_with_its_pod_is_found() -> None:
    objects = copy.deepcopy(DEV)
    objects["StatefulSet/segment-store"]["spec"]["replicas"] = 2
    found = rules.problems(list(objects.values()))
    assert found == ["StatefulSet/segment-store: segment-store-1 publishes a name that no Service has"]


def test_what_names_our_namespace_in_an_overlay_for_another_is_found() -> None:
    found = rules.left_behind([SITE["Namespace/sluice"], SITE["Certificate/api-gateway"], DEV["Service/redis"]])
    assert found[0] == "Namespace/sluice: is in the namespace sluice"
    assert "Certificate/api-gateway: says api-gateway-instances.sluice.svc.cluster.local" in found
    assert found[-1] == "Service/redis: is in the namespace sluice"
    moved = copy.deepcopy(DEV["Service/redis"])
    moved["metadata"]["namespace"] = "elsewhere"
    assert rules.left_behind([moved]) == []


def test_an_unknown_field_is_found() -> None:
    for name in ("Deployment/api-gateway", "ScaledObject/txn-manager"):
        manifest = copy.deepcopy(SITE[name])
        assert schemas.problems(manifest) == []
        manifest["spec"]["replicaz"] = 2
        assert "replicaz" in "".join(schemas.problems(manifest))


def test_a_kind_without_a_schema_is_found() -> None:
    unknown = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledJob", "metadata": {"name": "a"}, "spec": {}}
    assert "no definition of ScaledJob" in "".join(schemas.problems(unknown))
    assert "no Deploy" in "".join(schemas.problems({**unknown, "apiVersion": "apps/v1", "kind": "Deploy"}))


def test_a_rendering_older_than_its_sources_is_found(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "dev.yaml"
    kept.write_text(manifests.path_of("dev").read_text().replace(manifests.digest(), "0" * 16))
    monkeypatch.setattr(manifests, "path_of", lambda _overlay: kept)
    with pytest.raises(manifests.RenderError, match="k8s-render"):
        manifests.kept("dev")
