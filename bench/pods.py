"""What `make k8s-test` does to pods, each until all are ready again. Runs in the node's network, where kubectl is."""

import json
import os
import signal
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from harness import eventually

KAFKA = "kafka:9092"
READY_S = 300.0
_SOON_S = 60.0
_CALL_S = 400.0


def kubectl(*arguments: str) -> str:
    """What it prints. Raises AssertionError if it fails."""
    done = tried(*arguments)
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def tried(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    """kubectl's end, however it ends; `given` is its input."""
    command = ["kubectl", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=_CALL_S, check=False)


def pods(app: str) -> list[Any]:
    """The pods of a service or store."""
    selected = kubectl("get", "pods", f"--selector=app.kubernetes.io/name={app}", "--output=json")
    return list(json.loads(selected)["items"])


def is_ready(pod: Any) -> bool:
    """Whether it serves; not while it ends."""
    conditions = {c["type"]: c["status"] for c in pod["status"].get("conditions", ())}
    return "deletionTimestamp" not in pod["metadata"] and conditions.get("Ready") == "True"


def wait_for(app: str, count: int, without: frozenset[str] = frozenset()) -> None:
    """Return when there are exactly so many pods, all ready, none of those `without`."""

    def are_there() -> bool:
        found = pods(app)
        return len(found) == count and all(is_ready(p) and p["metadata"]["uid"] not in without for p in found)

    eventually(are_there, READY_S, f"{count} ready pods of {app}")


def scaled(service: str, count: int) -> None:
    """Other pods come or go, and have gone."""
    kubectl("scale", f"deployment/{service}", f"--replicas={count}")
    wait_for(service, count)


def rolled_out(service: str) -> None:
    """All its pods are replaced, as by a new version."""
    before = uids(service)
    kubectl("rollout", "restart", f"deployment/{service}")
    wait_for(service, len(before), before)


def deleted(app: str, count: int | None = None) -> None:
    """So many of its pods, or all, are killed without grace, as when a node is lost. What was on a volume stays."""
    before, kept = pods(app), on_volumes(app)
    chosen = [pod["metadata"] for pod in before][:count]
    kubectl("delete", "pod", *(metadata["name"] for metadata in chosen), "--grace-period=0", "--force")
    wait_for(app, len(before), frozenset(metadata["uid"] for metadata in chosen))
    assert kept <= on_volumes(app), f"{app}'s volume has lost {sorted(kept - on_volumes(app))[:5]}"


def uids(app: str) -> frozenset[str]:
    return frozenset(pod["metadata"]["uid"] for pod in pods(app))


def on_volumes(app: str) -> frozenset[tuple[str, int]]:
    """The folders on the volumes of its pods, with their inodes: what stays while a store works."""
    claims = [
        v["persistentVolumeClaim"]["claimName"]
        for p in pods(app)
        for v in p["spec"]["volumes"]
        if "persistentVolumeClaim" in v
    ]
    volumes = [
        kubectl("get", "persistentvolumeclaim", claim, "--output=jsonpath={.spec.volumeName}") for claim in claims
    ]
    folders = [Path("/run/k8s/data/volumes", volume.removeprefix("local-")) for volume in volumes]
    return frozenset((str(f), f.stat().st_ino) for folder in folders for f in (folder, *folder.iterdir()) if f.is_dir())


def kubelet_killed() -> None:
    """It is started again, the node reports, and no container was started anew."""
    before, last = _starts(), _last_report()
    (pid,) = _kubelets()
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: _kubelets() - {pid}, _SOON_S, "another kubelet")
    eventually(lambda: _last_report() > last, READY_S, "the node reports")
    kubectl("wait", "--for=condition=Ready", "node/node-1", "--timeout=60s")
    assert _starts() == before, "containers were started anew"


def _kubelets() -> set[int]:
    found = subprocess.run(["pgrep", "--exact", "kubelet"], capture_output=True, text=True, check=False)
    return {int(pid) for pid in found.stdout.split()}


def _last_report() -> str:
    lease = "--output=jsonpath={.spec.renewTime}"
    return kubectl("--namespace=kube-node-lease", "get", "lease", "node-1", lease)


def _starts() -> dict[str, list[int]]:
    found = json.loads(kubectl("get", "pods", "--output=json"))["items"]
    return {
        pod["metadata"]["uid"]: [c["restartCount"] for c in pod["status"]["containerStatuses"]]
        for pod in found
        if pod["status"]["phase"] == "Running"
    }


def drained(service: str) -> None:
    """Of two pods a drain takes one; the budget keeps the other as long as no third is ready elsewhere."""
    scaled(service, 2)
    kept = partial(lambda: [pod for pod in pods(service) if is_ready(pod)])
    chosen = f"--pod-selector=app.kubernetes.io/name={service}"
    try:
        done = tried("drain", "node-1", chosen, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=25s")
        assert done.returncode != 0 and "disruption budget" in done.stderr, done.stderr
        assert len(kept()) == 1, "the budget kept no pod, or two"
    finally:
        kubectl("uncordon", "node-1")
    wait_for(service, 2)
    scaled(service, 1)
