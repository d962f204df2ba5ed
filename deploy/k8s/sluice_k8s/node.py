"""A Kubernetes cluster of one node on this machine, and Sluice on it: `make k8s-up`, `make k8s-down`.

All of the node is below one process, in namespaces of its own (`deploy/k8s/node/init`): it takes no port, route, rule
or mount of the machine, and ends as a whole. What it writes is in one folder of the state folder, and goes with it. Its
addresses are reached by what `enter`, a script in that folder, runs.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import IO

from sluice_k8s import tools
from sluice_k8s.manifests import FOLDER, Manifest, containers, objects, pods

CLONE = FOLDER.parents[1]
VOLUMES = 24
_OWN = ("--mount", "--net", "--ipc", "--uts", "--cgroup", "--pid")
_INIT = FOLDER / "node" / "init"
_SLUICE = str(FOLDER / "node" / "sluice")
_NEEDED = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/ptp": "containernetworking-plugins",
    "nft": "nftables",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "openssl": "openssl",
    "unshare": "util-linux",
}
_CGROUPS = Path("/sys/fs/cgroup")
_READY_S = 120.0
_STOP_S = 20.0
_PODS_READY_S = 600
_LOOK_AGAIN_S = 0.1


class NodeError(Exception):
    """The node cannot be started, or does not do what it must."""


def up(home: Path, say: Callable[[str], None]) -> None:
    """Build what is missing, start the node, and return when Sluice runs on it. Raises NodeError, ToolError."""
    folder = _folder(home)
    if folder.exists():
        raise NodeError("there is a node; `make k8s-down` ends it")
    if os.geteuid() != 0:
        raise NodeError("a node takes root")
    for program, package in _NEEDED.items():
        tools.require(program, package)
    programs, helm = (tools.built(tool, home, say) for tool in (tools.CLUSTER, tools.HELM))
    engine = _engine(home)
    images = _images(engine, programs)
    began = time.monotonic()
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "helm").symlink_to(helm)
    _start(folder, programs)
    say(f"a node after {time.monotonic() - began:.1f} s")
    began = time.monotonic()
    saving = subprocess.Popen(["docker", "save", *images], env=engine, stdout=subprocess.PIPE)
    loaded = enter(folder, "ctr", "-n", "k8s.io", "images", "import", "-", given=saving.stdout)
    if saving.wait() != 0 or loaded.returncode != 0:
        raise NodeError(f"the images cannot be loaded:\n{loaded.stderr}")
    say(f"images loaded, {time.monotonic() - began:.1f} s")
    _apply(folder)
    began = time.monotonic()
    _kubectl(folder, "apply", "--kustomize", _SLUICE)
    for workload in _kubectl(folder, "get", "deployment,statefulset", "--output=name").split():
        _kubectl(folder, "rollout", "status", workload, f"--timeout={_PODS_READY_S}s")
    say(f"Sluice's pods are ready, {time.monotonic() - began:.1f} s after they were applied")
    address = _kubectl(folder, "get", "service", "api-gateway", "--output=jsonpath={.spec.clusterIP}")
    say(f"the gateway is at {address}, ports 9090 and 10080, for what runs in the node's network:")
    say(f"{os.path.relpath(folder / 'enter')} kubectl get pods")


def down(home: Path, say: Callable[[str], None]) -> None:
    """End the node, all pods with it, and delete what it kept."""
    folder = _folder(home)
    if (folder / "pid").exists():
        pid = int((folder / "pid").read_text())
        if _is_node(pid):
            os.kill(pid, signal.SIGTERM)
            _until(lambda: not Path("/proc", str(pid)).exists(), _STOP_S, "the node does not end")
    for group in _groups():
        for inner in sorted(group.glob("**/"), reverse=True):
            _until(partial(_is_removed, inner), _STOP_S, f"{inner} is still in use")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([CLONE / ".ci" / "engine", "stop"], check=True, env={**os.environ, "SLUICE_HOME": str(home)})
    say("no node is left")


def enter(folder: Path, *command: str, given: IO[bytes] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in the node's namespaces, with so much as its input."""
    stdin = subprocess.DEVNULL if given is None else given
    return subprocess.run([folder / "enter", *command], stdin=stdin, capture_output=True, text=True, check=False)


def _folder(home: Path) -> Path:
    return home / "k8s" / "node"


def _engine(home: Path) -> dict[str, str]:
    """The environment in which a container engine answers; started if none does."""
    started = subprocess.run(
        [CLONE / ".ci" / "engine", "start"],
        env={**os.environ, "SLUICE_HOME": str(home)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if started.returncode != 0:
        raise NodeError("the images need a container engine")
    address = started.stdout.strip()
    return {**os.environ, **({"DOCKER_HOST": address} if address else {})}


def _images(engine: dict[str, str], programs: Path) -> list[str]:
    """Build the images of Sluice's pods; their names."""
    rendered = subprocess.run([programs, "kubectl", "kustomize", _SLUICE], capture_output=True, text=True, check=True)
    found = pods(objects(rendered.stdout))
    wanted = sorted({container["image"] for _, pod in found for container in containers(pod)})
    names = [image.partition("/")[2].partition(":")[0] for image in wanted]
    if subprocess.run([CLONE / "deploy" / "images" / "build", *names], env=engine, check=False).returncode != 0:
        raise NodeError("the images cannot be built")
    # The first process of every pod only waits.
    pause = f'FROM {wanted[0]}\nENTRYPOINT ["sleep", "infinity"]'.encode()
    build = ["docker", "build", "--quiet", "--tag=sluice/pause:1", "-"]
    subprocess.run(build, env=engine, input=pause, capture_output=True, check=True)
    return [*wanted, "sluice/pause:1"]


def _start(folder: Path, programs: Path) -> None:
    with (folder / "init.log").open("wb") as log:
        process = subprocess.Popen(
            ["unshare", *_OWN, "--propagation=private", "--fork", "--kill-child", _INIT, folder, programs],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_into_own_groups,
        )
    children = Path("/proc", str(process.pid), "task", str(process.pid), "children")
    _until(lambda: process.poll() is not None or bool(children.read_text().strip()), _READY_S, "unshare does nothing")
    if process.poll() is not None:
        raise NodeError(f"the node ended:\n{(folder / 'init.log').read_text()[-3000:]}")
    pid = children.read_text().strip()
    (folder / "pid").write_text(pid)
    script = folder / "enter"
    script.write_text(
        "#!/bin/sh\n# Runs a command in the namespaces of the node, as its administrator.\n"
        f"export PATH=/run/k8s/bin:{folder}/bin:$PATH:/usr/sbin:/sbin KUBECONFIG=/run/k8s/data/admin.conf\n"
        f'exec nsenter --target {pid} --mount --net --ipc --uts --pid --wd="$PWD" -- "$@"\n'
    )
    script.chmod(0o755)
    _until(lambda: not _is_node(int(pid)) or (folder / "started").exists(), _READY_S, "the node does not come up")
    if not _is_node(int(pid)):
        raise NodeError(f"the node ended:\n{(folder / 'init.log').read_text()[-3000:]}")


def _into_own_groups() -> None:
    """In the child: control groups of its own, below which all that the node makes will lie."""
    for group in _groups():
        group.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (group / name).exists() and (group.parent / name).exists():
                (group / name).write_text((group.parent / name).read_text())
        (group / "cgroup.procs").write_text(str(os.getpid()))


def _groups() -> list[Path]:
    hierarchies = [_CGROUPS] if (_CGROUPS / "cgroup.controllers").exists() else sorted(_CGROUPS.iterdir())
    return [hierarchy / "sluice-k8s" for hierarchy in hierarchies if hierarchy.is_mount()]


def _is_removed(group: Path) -> bool:
    """Not while the last of its processes is still ending."""
    try:
        group.rmdir()
    except OSError:
        return False
    return True


def _is_node(pid: int) -> bool:
    try:
        return str(_INIT) in Path("/proc", str(pid), "cmdline").read_text()
    except FileNotFoundError:
        return False


def _apply(folder: Path) -> None:
    """What a cluster has before Sluice comes: names, metrics, and volumes for claims that name no class."""
    _kubectl(folder, "apply", "--filename", str(FOLDER / "node" / "objects.yaml"))
    volumes = {"apiVersion": "v1", "kind": "List", "items": [_volume(number) for number in range(VOLUMES)]}
    for number in range(VOLUMES):
        (folder / "data" / "volumes" / str(number)).mkdir(parents=True)
    (folder / "volumes.json").write_text(json.dumps(volumes))
    _kubectl(folder, "apply", "--filename", str(folder / "volumes.json"))


def _volume(number: int) -> Manifest:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"local-{number}"},
        "spec": {
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "capacity": {"storage": "10Gi"},
            "persistentVolumeReclaimPolicy": "Retain",
            "local": {"path": f"/run/k8s/data/volumes/{number}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def _kubectl(folder: Path, *arguments: str) -> str:
    done = enter(folder, "kubectl", *arguments)
    if done.returncode != 0:
        raise NodeError(f"kubectl {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def _until(is_so: Callable[[], bool], limit_s: float, otherwise: str) -> None:
    deadline = time.monotonic() + limit_s
    while not is_so():
        if time.monotonic() > deadline:
            raise NodeError(otherwise)
        time.sleep(_LOOK_AGAIN_S)
