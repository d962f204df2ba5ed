"""The Kubernetes manifests, as rendered: schemas, rules, and whether they fit the services and the images.

The renderings are those kept in the clone; `make k8s-check` compares them with kustomize's and asks an API server.
"""

import base64
import json
import re
import socket
import subprocess
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from api_gateway.settings import GatewaySettings, Serves
from cluster_manager.settings import ClusterManagerSettings
from retention_spark.settings import SparkSettings
from sluice.kafka.topics import TOPICS
from sluice.settings import ServiceSettings
from sluice_k8s import kafka_users, manifests, rules, schemas
from stream_workflows.settings import WorkflowSettings
from txn_manager.settings import TxnSettings

CLONE = Path(__file__).resolve().parents[2]
IMAGES = CLONE / "deploy" / "images"
SERVICES: dict[str, type[ServiceSettings]] = {
    "api-gateway": GatewaySettings,
    "console": GatewaySettings,
    "stream-workflows": WorkflowSettings,
    "txn-manager": TxnSettings,
    "cluster-manager": ClusterManagerSettings,
    "retention-spark": SparkSettings,
}
IMAGE_OF = {"console": "api-gateway"}
"""The image of a service that has none of its own name."""
VERSION = tomllib.loads((CLONE / "shared" / "pyproject.toml").read_text())["project"]["version"]


REGISTRIES = {"dev": "", "production": "", "site": "registry.example.com/"}
"""What each overlay says of where the images come from."""


@pytest.fixture(scope="module", params=manifests.OVERLAYS)
def rendered(request: pytest.FixtureRequest) -> list[manifests.Manifest]:
    return manifests.objects(manifests.kept(request.param))


def deployments(rendered: list[manifests.Manifest]) -> dict[str, Any]:
    return {m["metadata"]["name"]: m for m in rendered if m["kind"] == "Deployment"}


def test_every_object_is_what_its_schema_says(rendered: list[manifests.Manifest]) -> None:
    assert [problem for manifest in rendered for problem in schemas.problems(manifest)] == []


def test_templates_of_pods_in_config_maps_are_what_their_schema_says() -> None:
    """Not every overlay has one."""
    rendered = [manifests.objects(manifests.kept(overlay)) for overlay in manifests.OVERLAYS]
    templates = [pair for each in rendered for pair in manifests.pods(each) if pair[0].startswith("ConfigMap/")]
    assert templates
    for name, pod in templates:
        containers = [{"image": "image:1", **container} for container in pod["spec"]["containers"]]
        named = {
            **pod,
            "metadata": {**pod["metadata"], "name": name},
            "spec": {**pod["spec"], "containers": containers},
        }
        assert schemas.problems(named) == []


def test_every_object_keeps_to_the_rules(rendered: list[manifests.Manifest]) -> None:
    assert rules.problems(rendered) == []


@pytest.mark.parametrize("overlay", manifests.OVERLAYS)
def test_every_service_is_deployed_and_the_console_is_served_once(overlay: str) -> None:
    """By a Deployment of its own where there is room for it."""
    found = deployments(manifests.objects(manifests.kept(overlay)))
    assert found.keys() == SERVICES.keys() - ({"console"} if overlay == "dev" else set())
    serves = {
        name: given["SLUICE_SERVES"]
        for name, deployment in found.items()
        if "SLUICE_SERVES" in (given := variables_of(deployment))
    }
    apart = {"api-gateway": Serves.PRAVEGA, "console": Serves.CONSOLE}
    assert serves == ({"api-gateway": Serves.ALL} if overlay == "dev" else apart)


def variables_of(deployment: Any) -> dict[str, str | None]:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value") for variable in container["env"]}


def deployed(rendered: list[manifests.Manifest], service: str) -> Any:
    """The Deployment that is a service: the gateway, where the console has none of its own."""
    found = deployments(rendered)
    return found[service] if service in found else found["api-gateway"]


@pytest.mark.parametrize("service", SERVICES)
def test_every_setting_is_known_to_the_service_it_is_given_to(rendered: list[manifests.Manifest], service: str) -> None:
    (container,) = deployed(rendered, service)["spec"]["template"]["spec"]["containers"]
    secrets = [m for m in rendered if m["kind"] == "Secret"]
    shared = [*manifests.settings_of(rendered), *(name for secret in secrets for name in secret["data"])]
    given = [variable["name"] for variable in container["env"]]
    own = {f"SLUICE_{field.upper()}" for field in SERVICES[service].model_fields}
    common = {f"SLUICE_{field.upper()}" for field in ServiceSettings.model_fields}
    assert set(shared) <= common
    assert {name for name in given if name.startswith("SLUICE_")} <= own
    assert not set(shared) & set(given), "said twice"


def test_the_settings_that_all_services_share_can_be_read(
    rendered: list[manifests.Manifest], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in manifests.settings_of(rendered).items():
        monkeypatch.setenv(name, value)
    for settings in SERVICES.values():
        assert settings().partitions == 16
        assert settings().container_count == 4


@pytest.mark.parametrize("service", SERVICES)
def test_ports_and_users_are_those_of_the_image(rendered: list[manifests.Manifest], service: str) -> None:
    deployment = deployed(rendered, service)
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    dockerfile = (IMAGES / f"{IMAGE_OF.get(service, service)}.Dockerfile").read_text()
    (exposed,) = re.findall(r"^EXPOSE (.*)$", dockerfile, re.MULTILINE)
    named = {str(port["containerPort"]) for port in container["ports"] if port["name"] in ("grpc", "health")}
    unused = {"9090"} if deployment["metadata"]["name"] == "console" else set()
    assert named == set(exposed.split()) - unused
    (health,) = (port["containerPort"] for port in container["ports"] if port["name"] == "health")
    assert SERVICES[service]().health_port == health
    (user,) = re.findall(r"^USER (\d+):(\d+)$", (IMAGES / "runtime.Dockerfile").read_text(), re.MULTILINE)
    assert tuple(map(str, (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]))) == user


@pytest.mark.parametrize("overlay", manifests.OVERLAYS)
def test_images_come_from_where_the_overlay_says(overlay: str) -> None:
    rendered = manifests.objects(manifests.kept(overlay))
    for name, deployment in deployments(rendered).items():
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert container["image"] == f"{REGISTRIES[overlay]}sluice/{IMAGE_OF.get(name, name)}:{VERSION}"
    every = {c.get("image", "") for _, pod in manifests.pods(rendered) for c in manifests.containers(pod)}
    ours = re.compile(re.escape(REGISTRIES[overlay]) + rf"sluice/[a-z-]+:{re.escape(VERSION)}")
    assert [image for image in every if "sluice/" in image and not ours.fullmatch(image)] == []


def test_spark_has_room_where_it_spills_to(rendered: list[manifests.Manifest]) -> None:
    assert "SLUICE_SPARK_LOCAL=/tmp/spark " in (IMAGES / "retention-spark.Dockerfile").read_text()
    of_spark = [
        (name, pod)
        for name, pod in manifests.pods(rendered)
        if pod["metadata"]["labels"]["app.kubernetes.io/name"].startswith("retention-spark")
    ]
    assert of_spark
    for name, pod in of_spark:
        limits = {volume["name"]: volume.get("emptyDir", {}).get("sizeLimit") for volume in pod["spec"]["volumes"]}
        assert limits["tmp"] == "2Gi", name


def test_metrics_are_where_the_annotations_say(rendered: list[manifests.Manifest]) -> None:
    for deployment in deployments(rendered).values():
        template = deployment["spec"]["template"]
        (container,) = template["spec"]["containers"]
        (health,) = (port["containerPort"] for port in container["ports"] if port["name"] == "health")
        assert template["metadata"]["annotations"]["prometheus.io/port"] == str(health)


def test_scalers_watch_groups_and_topics_that_exist() -> None:
    rendered = manifests.objects(manifests.kept("production"))
    watched: dict[str, set[tuple[str, str]]] = {}
    for manifest in rendered:
        if manifest["kind"] == "ScaledObject":
            of_service = watched.setdefault(manifest["metadata"]["name"], set())
            for trigger in manifest["spec"]["triggers"]:
                of_service.add((trigger["metadata"]["consumerGroup"], trigger["metadata"]["topic"]))
    assert watched == {
        service: {(topic.group, topic.name) for topic in TOPICS if topic.group and topic.read_by == (service,)}
        for service in ("stream-workflows", "txn-manager")
    }


def test_the_embedded_stores_fit_the_shared_settings() -> None:
    rendered = manifests.objects(manifests.kept("dev"))
    settings = manifests.settings_of(rendered)
    (store,) = (
        m["data"] for m in rendered if m["kind"] == "ConfigMap" and m["metadata"]["name"].startswith("segment-")
    )
    properties = dict(
        line.split("=", 1) for line in store["segment-store.properties"].splitlines() if not line.startswith("#")
    )
    assert properties["pravegaservice.container.count"] == settings["SLUICE_CONTAINER_COUNT"]
    assert properties["pravegaservice.clusterName"] == settings["SLUICE_CLUSTER_NAME"]
    assert properties["pravegaservice.zk.connect.uri"] == settings["SLUICE_ZOOKEEPER"]
    services = {m["metadata"]["name"]: m["spec"]["ports"] for m in rendered if m["kind"] == "Service"}
    for address in (settings["SLUICE_KAFKA_BOOTSTRAP"], settings["SLUICE_ZOOKEEPER"]):
        name, _, port = address.partition(":")
        assert int(port) in {offered["port"] for offered in services[name]}


SECURED = ("production", "site")


def mounted_secrets(rendered: list[manifests.Manifest]) -> dict[str, set[str]]:
    """By service the Secrets that it reads as files."""
    return {
        name: {v["secret"]["secretName"] for v in d["spec"]["template"]["spec"]["volumes"] if "secret" in v}
        for name, d in deployments(rendered).items()
    }


@pytest.mark.parametrize("overlay", SECURED)
def test_each_service_is_given_the_secrets_that_it_needs_and_no_others(overlay: str) -> None:
    data_plane = {"sluice-authorities", "sluice-token"}
    assert mounted_secrets(manifests.objects(manifests.kept(overlay))) == {
        "api-gateway": {"sluice-kafka-api-gateway", "sluice-tls", "sluice-accounts", *data_plane},
        "console": {"sluice-kafka-console", "sluice-tls", "sluice-accounts", *data_plane},
        "stream-workflows": {"sluice-kafka-stream-workflows", *data_plane},
        "txn-manager": {"sluice-kafka-txn-manager", "sluice-redis", *data_plane},
        "cluster-manager": {"sluice-kafka-cluster-manager", "sluice-authorities"},
        "retention-spark": {"sluice-kafka-retention-spark"},
    }


def test_the_guide_lists_the_secrets_to_make() -> None:
    guide = (CLONE / "docs" / "operations.md").read_text()
    section = guide.partition("#### Secrets\n")[2].partition("\n#")[0]
    listed = set(re.findall(r"^- `(sluice-[\w-]+)", section, re.MULTILINE))
    wanted = set().union(*mounted_secrets(manifests.objects(manifests.kept("production"))).values())
    of_kafka = {f"sluice-kafka-{service}" for service in SERVICES}
    assert of_kafka <= wanted
    assert listed == (wanted - of_kafka) | {"sluice-kafka-", "sluice-kafka-keda"}


@pytest.mark.parametrize("overlay", SECURED)
def test_production_asks_who_calls_and_speaks_tls(overlay: str) -> None:
    rendered = manifests.objects(manifests.kept(overlay))
    variables = {service: variables_of(d) for service, d in deployments(rendered).items()}
    for public in (variables["api-gateway"], variables["console"]):
        assert public["SLUICE_AUTH_ENABLED"] == variables["cluster-manager"]["SLUICE_ZOOKEEPER_TLS"] == "true"
        assert public["SLUICE_TLS_CERTIFICATE"] and public["SLUICE_TLS_KEY"]
    for service in ("api-gateway", "console", "stream-workflows", "txn-manager"):
        assert variables[service]["SLUICE_STORE_TLS"] == "true" and variables[service]["SLUICE_TOKEN_KEY_FILE"]
    (secrets,) = [m["data"] for m in rendered if m["kind"] == "Secret"]
    assert base64.b64decode(secrets["SLUICE_REDIS_URL"]).startswith(b"rediss://")
    assert all(given["SLUICE_KAFKA_CONF"] for given in variables.values())


def test_prometheus_reaches_a_secured_gateway() -> None:
    folder = CLONE / "deploy" / "observability"
    (job,) = yaml.safe_load((folder / "prometheus-kubernetes.yaml").read_text())["scrape_configs"]
    (rule,) = [rule for rule in job["relabel_configs"] if rule.get("target_label") == "__scheme__"]
    rendered = manifests.objects(manifests.kept("site"))
    annotations = deployments(rendered)["api-gateway"]["spec"]["template"]["metadata"]["annotations"]
    assert rule["source_labels"] == ["__meta_kubernetes_pod_annotation_prometheus_io_scheme"]
    assert re.fullmatch(rule["regex"], annotations["prometheus.io/scheme"])
    (certificate,) = [m["spec"] for m in rendered if m["kind"] == "Certificate"]
    assert job["tls_config"]["server_name"] in certificate["dnsNames"]


def test_the_development_overlay_keeps_security_off() -> None:
    rendered = manifests.kept("dev")
    assert not re.findall("SLUICE_AUTH|SLUICE_TLS|SLUICE_TOKEN|SLUICE_STORE_TLS", rendered)


def test_the_certificate_has_every_name_that_clients_are_given() -> None:
    rendered = manifests.objects(manifests.kept("site"))
    (certificate,) = [m["spec"] for m in rendered if m["kind"] == "Certificate"]
    names = set(certificate["dnsNames"])
    for overlay in SECURED:
        for deployment in deployments(manifests.objects(manifests.kept(overlay))).values():
            published = variables_of(deployment).get("SLUICE_GRPC_PUBLISHED_HOST") or "localhost"
            assert published.replace("$(NAMESPACE)", "sluice") in names
    services = [m["metadata"]["name"] for m in rendered if m["kind"] == "Service"]
    assert {f"{name}.sluice.svc" for name in services if not name.endswith("external")} <= names
    assert certificate["secretName"] == "sluice-tls"


def test_kafkas_users_are_those_that_the_code_says() -> None:
    assert kafka_users.PATH.read_text() == kafka_users.text()


def test_kafkas_users_have_the_passwords_that_the_services_read() -> None:
    rendered = manifests.objects(manifests.kept("site"))
    passwords = {
        m["metadata"]["name"]: m["spec"]["authentication"]["password"]["valueFrom"]["secretKeyRef"]["name"]
        for m in rendered
        if m["kind"] == "KafkaUser"
    }
    for service, mounted in mounted_secrets(rendered).items():
        assert passwords[f"sluice-{service}"] in mounted
    (scaler,) = [m["spec"]["secretTargetRef"] for m in rendered if m["kind"] == "TriggerAuthentication"]
    assert {one["name"] for one in scaler} == {passwords["sluice-keda"]}
    scaled = [trigger for m in rendered if m["kind"] == "ScaledObject" for trigger in m["spec"]["triggers"]]
    assert [trigger["authenticationRef"]["name"] for trigger in scaled] == ["kafka"] * len(scaled)


def test_each_service_connects_to_what_it_needs_and_nothing_else() -> None:
    rendered = manifests.objects(manifests.kept("production"))
    policies = [m["spec"] for m in rendered if m["kind"] == "NetworkPolicy"]
    opened: dict[str, set[int]] = {}
    for policy in policies:
        selector = policy["podSelector"]
        named = selector.get("matchLabels", {}).get("app.kubernetes.io/name")
        expressed = [value for one in selector.get("matchExpressions", ()) for value in one["values"]]
        for service in [named] if named else expressed or SERVICES:
            ports = {port["port"] for rule in policy.get("egress", ()) for port in rule["ports"]}
            opened.setdefault(service, set()).update(ports)
    dns, kafka, stores, redis, zookeeper = 53, 9092, 12345, 6379, 2181
    assert opened == {
        "api-gateway": {dns, kafka, stores},
        "console": {dns, kafka, stores},
        "stream-workflows": {dns, kafka, stores},
        "txn-manager": {dns, kafka, stores, redis},
        "cluster-manager": {dns, kafka, zookeeper},
        "retention-spark": {dns, kafka},
    }


def driver_of(overlay: str) -> tuple[dict[str, Any], dict[str, str | None]]:
    """The container of Spark's driver, and its variables."""
    rendered = manifests.objects(manifests.kept(overlay))
    (driver,) = deployments(rendered)["retention-spark"]["spec"]["template"]["spec"]["containers"]
    return driver, {variable["name"]: variable.get("value") for variable in driver["env"]}


def test_executors_start_as_the_image_says() -> None:
    driver, values = driver_of("site")
    (pod,) = (pod for name, pod in manifests.pods(manifests.objects(manifests.kept("site"))) if "ConfigMap/" in name)
    (executor,) = pod["spec"]["containers"]
    assert f" {executor['command'][0]}\n" in (IMAGES / "retention-spark.Dockerfile").read_text()
    conf = json.loads(values["SLUICE_SPARK_CONF"] or "")
    assert conf["spark.kubernetes.executor.podTemplateContainerName"] == executor["name"]
    assert (conf["spark.authenticate"], conf["spark.network.crypto.enabled"]) == ("true", "true")
    ports = {port["name"]: str(port["containerPort"]) for port in driver["ports"]}
    assert (conf["spark.driver.port"], conf["spark.blockManager.port"]) == (ports["driver"], ports["blocks"])


def test_executors_run_from_the_image_of_their_driver() -> None:
    """In a layer above the one that says the base's registry and tag."""
    driver, values = driver_of("site")
    assert values["IMAGE"] == driver["image"] != driver_of("production")[0]["image"]
    conf = json.loads(values["SLUICE_SPARK_CONF"] or "")
    assert conf["spark.kubernetes.container.image"] == "$(IMAGE)"


def test_without_executors_spark_is_one_process() -> None:
    _, values = driver_of("production")
    assert values["SLUICE_SPARK_MASTER"] == "local[2]"
    rendered = manifests.objects(manifests.kept("production"))
    assert not {"Role", "RoleBinding"} & {manifest["kind"] for manifest in rendered}
    claims = [m["spec"]["accessModes"] for m in rendered if m["kind"] == "PersistentVolumeClaim"]
    assert claims == [["ReadWriteOnce"]]


def test_a_site_says_all_that_the_components_leave_to_it() -> None:
    rendered = manifests.kept("site")
    assert "said-by-the-overlay.invalid" not in rendered
    assert "said by a replacement" not in rendered
    assert "192.0.2.0/32" not in rendered


def test_services_reach_the_collector_they_are_configured_with() -> None:
    rendered = manifests.objects(manifests.kept("site"))
    address = re.fullmatch(r"http://[\w-]+\.([\w-]+):(\d+)", manifests.settings_of(rendered)["SLUICE_OTLP_ENDPOINT"])
    assert address is not None
    (policy,) = (m["spec"] for m in rendered if m["metadata"]["name"] == "services-to-collector")
    (expression,) = policy["podSelector"]["matchExpressions"]
    assert set(expression["values"]) == SERVICES.keys()
    (rule,) = policy["egress"]
    (where,) = rule["to"]
    assert where["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": address[1]}
    assert rule["ports"] == [{"protocol": "TCP", "port": int(address[2])}]


@pytest.mark.parametrize(
    ("overlay", "service", "port", "label"),
    [
        *((overlay, "api-gateway", "grpc", "sluice-grpc") for overlay in manifests.OVERLAYS),
        *((overlay, "api-gateway", "health", "sluice-rest") for overlay in manifests.OVERLAYS),
        *((overlay, "console", "health", "sluice-console") for overlay in SECURED),
    ],
)
def test_pods_reach_each_interface_by_a_label_of_their_own(overlay: str, service: str, port: str, label: str) -> None:
    labels = {"matchLabels": {label: "allowed"}}
    rendered = manifests.objects(manifests.kept(overlay))
    named = {"matchLabels": {"app.kubernetes.io/name": service}}
    policies = [m["spec"] for m in rendered if m["kind"] == "NetworkPolicy" and m["spec"]["podSelector"] == named]
    opened = [rule for policy in policies for rule in policy.get("ingress", ()) if rule["ports"][0]["port"] == port]
    by_label = [peer for rule in opened for peer in rule["from"] if peer.get("podSelector") == labels]
    assert by_label == [{"podSelector": labels, "namespaceSelector": labels}]
    (namespace,) = (m["metadata"]["labels"] for m in rendered if m["kind"] == "Namespace")
    assert namespace[label] == "allowed"


def test_the_segment_store_may_report_to_the_gateway() -> None:
    objects = manifests.objects(manifests.kept("dev"))
    (namespace,) = (m["metadata"]["labels"] for m in objects if m["kind"] == "Namespace")
    (store,) = (pod["metadata"]["labels"] for name, pod in manifests.pods(objects) if name.endswith("/segment-store"))
    assert namespace["sluice-grpc"] == store["sluice-grpc"] == "allowed"


WAIT_S = 60
NODE = {"cpu": 2.0, "memory": 4096.0}
OF_THE_NODE = {"cpu": 1.0, "memory": 1100.0}
"""What it has for itself and its own pods, where the control plane runs on it, too: cores and MiB."""

_UNITS = {"m": 0.001, "Mi": 1.0, "Gi": 1024.0}


def amount(text: str) -> float:
    """Cores, or MiB."""
    found = re.fullmatch(r"(\d+)(m|Mi|Gi)?", text)
    assert found is not None, text
    return int(found[1]) * _UNITS.get(found[2], 1.0)


def requested(pod: manifests.Manifest, what: str) -> float:
    """What the scheduler counts: the containers together, or the largest of those before them if that is more."""
    own, before = pod["spec"]["containers"], pod["spec"].get("initContainers", [])
    of_one = [amount(container["resources"]["requests"][what]) for container in before]
    return max(sum(amount(container["resources"]["requests"][what]) for container in own), *of_one, 0.0)


@pytest.mark.parametrize("what", NODE)
def test_the_dev_overlay_fits_a_node_of_two_cores_and_4_gib(what: str) -> None:
    rendered = manifests.objects(manifests.kept("dev"))
    workloads = [m["spec"] for m in rendered if m["kind"] in ("Deployment", "StatefulSet")]
    assert {spec["replicas"] for spec in workloads} == {1}
    assert sum(requested(spec["template"], what) for spec in workloads) <= NODE[what] - OF_THE_NODE[what]


@pytest.mark.parametrize("overlay", manifests.OVERLAYS)
def test_txn_manager_has_room_for_its_child(overlay: str) -> None:
    """It is a service as stream-workflows is, and has a second process, of 78 MB."""
    found = deployments(manifests.objects(manifests.kept(overlay)))
    of_service = {name: found[name]["spec"]["template"]["spec"]["containers"][0]["resources"] for name in found}
    for kind in ("requests", "limits"):
        plain, with_child = (of_service[name][kind]["memory"] for name in ("stream-workflows", "txn-manager"))
        assert amount(with_child) - amount(plain) >= 78e6 / 2**20, kind


@pytest.mark.parametrize(("can_be_read", "kept"), [(True, range(2, 9)), (False, range(1, 9))])
def test_a_back_up_keeps_the_newest_seven_if_it_can_be_read(can_be_read: bool, kept: range, tmp_path: Path) -> None:
    pods = dict(manifests.pods(manifests.objects(manifests.kept("site"))))
    (container,) = pods["CronJob/back-up"]["spec"]["containers"]
    (script,) = container["args"]
    volume, programs = tmp_path / "back-ups", tmp_path / "bin"
    for night in range(1, 8):
        (folder := volume / f"2026-01-0{night}T021700").mkdir(parents=True)
        (folder / "manifest.json").touch()
    (volume / "2025-12-31T021700").mkdir()
    programs.mkdir()
    ends = "true" if can_be_read else "false"
    (programs / "sluice").write_text(
        f'#!/bin/sh\ncase $2 in create) mkdir "$3" && touch "$3/manifest.json" ;; verify) {ends} ;; esac\n'
    )
    (programs / "sluice").chmod(0o755)
    done = subprocess.run(
        [*container["command"], script.replace("/back-ups", str(volume))],
        env={"PATH": f"{programs}:/usr/bin:/bin"},
        check=False,
        timeout=WAIT_S,
    )
    assert (done.returncode == 0) is can_be_read
    complete = sorted(path.parent.name for path in volume.glob("*/manifest.json"))
    assert complete[:-1] == [f"2026-01-0{night}T021700" for night in kept if night < 8]
    assert complete[-1] > "2026-01-08", "the new one"


@pytest.mark.parametrize(("store", "needs"), [("bookie", ["zookeeper"]), ("segment-store", ["zookeeper", "bookie"])])
def test_a_store_waits_for_those_it_needs(store: str, needs: list[str], unused_tcp_port_factory: Any) -> None:
    pods = dict(manifests.pods(manifests.objects(manifests.kept("dev"))))
    wait = pods[f"StatefulSet/{store}"]["spec"]["initContainers"][0]
    (script,) = wait["args"]
    ports = {name: unused_tcp_port_factory() for name in needs}
    for name, port in ports.items():
        script, count = re.subn(rf"\b{name}/\d+", f"127.0.0.1/{port}", script)
        assert count == 1, name
    with (
        subprocess.Popen([*wait["command"], script], stdout=subprocess.PIPE, text=True) as waiting,
        ExitStack() as stack,
    ):
        stack.callback(waiting.kill)
        assert waiting.stdout is not None
        for port in ports.values():
            line = next(line for line in waiting.stdout if str(port) in line)
            assert (line, waiting.poll()) == (f"waiting for 127.0.0.1/{port}\n", None)
            stack.enter_context(socket.create_server(("127.0.0.1", port)))
        assert waiting.wait(WAIT_S) == 0
