"""The operator of custom resources on a real Kubernetes API server, with the rights that its Role gives it.

`make k8s-check` runs this file, by its name: it needs that command's programs. The gateway is in memory, with the
workflows behind it.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import kopf
import pytest
import yaml
from support.custom_resources import api_of
from support.ports import free_port
from support.wait import eventually_async
from unit.gateway.rest.world import World

from sluice_cli.custom_resources.operator import GROUP, VERSION, registry, settings
from sluice_k8s import chart, tools
from sluice_k8s.api_server import api_server
from sluice_k8s.dry_run import DryRun
from sluice_local.settings import LocalSettings

NAMESPACE = "sluice"
WAIT_S = 60.0
"""Several retries of the operator."""


class Resources:
    """The resources of the namespace, as its users have them."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def create(self, kind: str, name: str, **spec: Any) -> httpx.Response:
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": kind, "metadata": {"name": name}, "spec": spec}
        return self._client.post(_path(kind), json=body)

    def change(self, kind: str, name: str, **spec: Any) -> httpx.Response:
        headers = {"Content-Type": "application/merge-patch+json"}
        return self._client.patch(_path(kind, name), json={"spec": spec}, headers=headers)

    def delete(self, kind: str, name: str) -> None:
        self._client.delete(_path(kind, name)).raise_for_status()

    async def until_gone(self, kind: str, name: str) -> None:
        await eventually_async(lambda: self._client.get(_path(kind, name)).status_code == 404, WAIT_S, f"{name} stays")

    async def until(self, kind: str, name: str, status: str, *reasons: str) -> Any:
        """The condition, once it is so for the newest spec."""

        def condition() -> Any:
            found = self._client.get(_path(kind, name)).json()
            (one,) = found["status"]["conditions"]
            is_so = (one["status"], one["observedGeneration"]) == (status, found["metadata"]["generation"])
            return one if is_so and one["reason"] in reasons else None

        return await eventually_async(condition, WAIT_S, f"{name} is not {status} for {reasons}")


def _path(kind: str, name: str = "") -> str:
    plural = f"/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{kind.lower()}s"
    return f"{plural}/{name}" if name else plural


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """An API server with the component applied."""
    home = LocalSettings().home
    kustomize = tools.built(tools.KUSTOMIZE, home, print)
    etcd, server = (tools.of_cluster(name, home, print) for name in ("etcd", "kube-apiserver"))
    objects = chart.built(kustomize, ["customResources"], NAMESPACE)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    wanted = [m for m in objects if m["metadata"]["name"] == "custom-resources"]
    folder = tmp_path_factory.mktemp("api-server")
    with api_server(etcd, server, folder) as client:
        apply = DryRun(client, [m for m in objects if m["kind"] == "CustomResourceDefinition"]).apply
        assert [problem for one in (namespace, *wanted) for problem in apply(one, real=True)] == []
        yield client


@pytest.fixture(scope="module")
def account(cluster: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kubeconfig of the operator's service account."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/custom-resources/token"
    answer = cluster.post(path, json={"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    server = {"server": str(cluster.base_url), "insecure-skip-tls-verify": True}
    config = {
        "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": server}],
        "users": [{"name": "it", "user": {"token": answer.raise_for_status().json()["status"]["token"]}}],
    }
    kubeconfig = tmp_path_factory.mktemp("account") / "config"
    kubeconfig.write_text(yaml.safe_dump(config))
    return kubeconfig


@pytest.fixture(scope="module")
def resources(cluster: httpx.Client) -> Resources:
    return Resources(cluster)


@pytest.fixture
async def world(account: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """The gateway, with an operator that runs."""
    monkeypatch.setenv("KUBECONFIG", str(account))
    world, stop = World(), threading.Event()
    await world.start()
    world.client = httpx.AsyncClient(transport=httpx.ASGITransport(world.app), base_url="http://gateway")
    loop = asyncio.get_running_loop()
    given = registry(lambda: api_of(world, loop))

    def work() -> None:
        operator = kopf.operator(
            registry=given, settings=settings(), namespaces=[NAMESPACE], standalone=True, stop_flag=stop
        )
        asyncio.run(operator)

    working = asyncio.create_task(asyncio.to_thread(work))
    yield world
    stop.set()
    await working
    await world.client.aclose()
    await world.stop()


async def described(world: World, path: str) -> Any:
    """What the gateway says; its status where there is nothing."""
    found = await world.call("GET", f"/sluice/v1/scopes/{path}")
    return found.json() if found.is_success else found.status_code


async def test_a_scope_and_a_stream_are_made_and_follow_their_specs(world: World, resources: Resources) -> None:
    resources.create("Scope", "shop", scope="shop").raise_for_status()
    resources.create("Stream", "shop.orders", scope="shop", stream="Orders").raise_for_status()
    await resources.until("Scope", "shop", "True", "Created", "AsSpecified")
    await resources.until("Stream", "shop.orders", "True", "Created", "AsSpecified")
    assert (await described(world, "shop/streams/Orders"))["config"]["scaling"]["minSegments"] == 1
    retention, scaling = {"type": "time", "min": 3_600_000}, {"minSegments": 3}
    resources.change("Stream", "shop.orders", scaling=scaling, retention=retention).raise_for_status()
    await resources.until("Stream", "shop.orders", "True", "Updated", "AsSpecified")
    found = await described(world, "shop/streams/Orders")
    assert (found["config"]["scaling"]["minSegments"], len(found["segments"])) == (3, 3)
    assert found["config"]["retention"] == {**retention, "max": 2**63 - 1}


@pytest.mark.usefixtures("world")
async def test_a_stream_waits_for_its_scope_and_says_so(resources: Resources) -> None:
    resources.create("Stream", "late.st", scope="late", stream="st").raise_for_status()
    refused = await resources.until("Stream", "late.st", "False", "SCOPE_NOT_FOUND")
    assert "late" in refused["message"]
    resources.create("Scope", "late", scope="late").raise_for_status()
    await resources.until("Stream", "late.st", "True", "Created")


async def test_a_resource_that_goes_takes_with_it_what_it_says(world: World, resources: Resources) -> None:
    resources.create("Scope", "going", scope="going", deletion="Delete").raise_for_status()
    await resources.until("Scope", "going", "True", "Created")
    for name, deletion in (("kept", "Keep"), ("gone", "Delete")):
        resources.create("Stream", f"going.{name}", scope="going", stream=name, deletion=deletion).raise_for_status()
        await resources.until("Stream", f"going.{name}", "True", "Created", "AsSpecified")
        resources.delete("Stream", f"going.{name}")
        await resources.until_gone("Stream", f"going.{name}")
    assert (await described(world, "going/streams/kept"))["state"] == "ACTIVE"
    assert await described(world, "going/streams/gone") == 404
    resources.delete("Scope", "going")
    await resources.until("Scope", "going", "False", "SCOPE_NOT_EMPTY")
    resources.change("Scope", "going", deletion="DeleteAll").raise_for_status()
    await resources.until_gone("Scope", "going")
    assert await described(world, "going") == 404


@pytest.mark.parametrize(
    ("name", "spec", "why"),
    [
        ("other", {"scope": "a", "stream": "b"}, "SCOPE.STREAM"),
        ("a.b", {"scope": "a", "stream": "b", "scaling": {"type": "bytes"}}, "Unsupported value"),
        ("a.b", {"scope": "a", "stream": "b", "deletion": "Never"}, "Unsupported value"),
        ("a.b", {"scope": "a", "stream": "b", "retention": {"type": "time"}}, "Required value"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused_at_once(
    resources: Resources, name: str, spec: dict[str, Any], why: str
) -> None:
    refused = resources.create("Stream", name, **spec)
    assert (refused.status_code, why in refused.json()["message"]) == (422, True), refused.text


def test_a_stream_cannot_be_renamed(resources: Resources) -> None:
    resources.create("Stream", "sc.st", scope="sc", stream="st").raise_for_status()
    refused = resources.change("Stream", "sc.st", stream="ST")
    assert (refused.status_code, "renamed" in refused.text) == (422, True), refused.text


def test_the_command_answers_probes_says_that_nothing_can_be_reached_and_ends_when_told(
    account: Path, resources: Resources
) -> None:
    port, nowhere = free_port(), free_port()
    resources.create("Scope", "far", scope="far").raise_for_status()
    command = [sys.executable, "-c", "from sluice_cli.main import main; main()", "custom-resources"]
    own = {"KUBECONFIG": str(account), "SLUICE_API": f"http://127.0.0.1:{nowhere}"}
    with subprocess.Popen(
        [*command, "--namespace", NAMESPACE, "--health", f"127.0.0.1:{port}"],
        env={**os.environ, **own},
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            condition = asyncio.run(resources.until("Scope", "far", "False", "Unreachable"))
            assert str(nowhere) in condition["message"]
            assert httpx.get(f"http://127.0.0.1:{port}/livez").is_success
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()
