"""The programs the checks run: kustomize, Helm and those of a Kubernetes cluster, built once from the Go module proxy.

Their versions and the hashes of everything they consist of stand in `tools/*/go.mod` and `go.sum`. What is built lies
in the state folder under a name that follows from those files: a new version is built anew. An API server and etcd that
lie in the folder that KUBEBUILDER_ASSETS names, where setup-envtest puts them, are used before these.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sluice_k8s.manifests import FOLDER

_LIMIT_S = 3600.0


class ToolError(Exception):
    """A program is not there and cannot be built."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program, its Go package, and the folder of `tools` that says its version."""

    name: str
    package: str
    folder: str
    takes: str


KUSTOMIZE = Tool("kustomize", "sigs.k8s.io/kustomize/kustomize/v5", "kustomize", "about a minute")
HELM = Tool("helm", "helm.sh/helm/v3/cmd/helm", "helm", "some minutes")
CLUSTER = Tool("kube-all", ".", "cluster", "10 to 40 minutes")
"""etcd, kubectl and all that a node runs; the first argument says which."""


def built(tool: Tool, home: Path, say: Callable[[str], None]) -> Path:
    """Return the path of a program, built if it is not there yet. Raises ToolError."""
    module = FOLDER / "tools" / tool.folder
    sources = sorted(module.glob("*.go"))
    stamps = _stamps((module / "go.mod").read_text())
    made_from = b"".join(path.read_bytes() for path in (module / "go.mod", module / "go.sum", *sources))
    version = hashlib.sha256(made_from + stamps.encode()).hexdigest()[:12]
    program = home / "k8s" / f"{tool.name}-{version}"
    if program.exists():
        return program
    go = _go(f"{tool.name} is built from source")
    say(f"{tool.name}: building, {tool.takes}, once")
    program.parent.mkdir(parents=True, exist_ok=True)
    unfinished = program.with_suffix(".new")
    command = [go, "build", "-mod=readonly", "-buildvcs=false", f"-ldflags=-s -w{stamps}", "-o", str(unfinished)]
    # So that a machine which does other work does not notice.
    done = _run(["nice", "-n", "19", *command, tool.package], module)
    if done.returncode != 0:
        raise ToolError(f"{tool.name} could not be built:\n{done.stderr[-3000:]}")
    unfinished.rename(program)
    return program


def _stamps(go_mod: str) -> str:
    """What tells Kubernetes its own version: a chart asks the API server for it."""
    found = re.search(r"k8s\.io/kubernetes v(\d+)\.(\d+)\.\d+", go_mod)
    if found is None:
        return ""
    said = {"gitVersion": found[0].partition(" ")[2], "gitMajor": found[1], "gitMinor": found[2]}
    return "".join(f" -X k8s.io/component-base/version.{name}={value}" for name, value in said.items())


def downloaded(folder: str) -> dict[str, Path]:
    """Return where each module lies that a folder of `tools` requires, fetched if it is not there. Raises ToolError."""
    go = _go("definitions of custom resources come from Go modules")
    module = FOLDER / "tools" / folder
    named = re.findall(r"^\t(\S+) v", (module / "go.mod").read_text(), re.MULTILINE)
    done = _run([go, "mod", "download", "-json", *named], module)
    if done.returncode != 0:
        raise ToolError(f"{', '.join(named)} could not be fetched:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    said = re.findall(r'"(?:Path|Dir)": "(.*)"', done.stdout)
    return {name: Path(where) for name, where in zip(said[::2], said[1::2], strict=True)}


def _go(why: str) -> str:
    go = shutil.which("go")
    if go is None:
        raise ToolError(f"{why}, and there is no Go on the path; install Go 1.24 or newer")
    return go


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=_LIMIT_S, check=False
    )


def of_cluster(name: str, home: Path, say: Callable[[str], None]) -> list[str]:
    """Return what runs a program of a cluster, without its arguments. Raises ToolError."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if folder and (ready := Path(folder) / name).exists():
        return [str(ready)]
    return [str(built(CLUSTER, home, say)), name]


def require(name: str, package: str) -> None:
    """Raise ToolError if this machine does not have the program."""
    if shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin") is None:
        raise ToolError(f"{name} is not on the path (on Debian: apt-get install {package})")
