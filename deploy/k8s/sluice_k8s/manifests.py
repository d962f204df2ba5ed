"""The manifests as they are rendered: by kustomize, and as they stand in `rendered`.

The renderings are kept with the sources so that tests need no kustomize. Each begins with a digest of what it was made
from, so one that was not made anew after a change is found out. Functions without state.
"""

import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

Manifest = dict[str, Any]

FOLDER = Path(__file__).resolve().parents[1]
NAMESPACE = "sluice"
OVERLAYS = ("dev", "production", "site")
CHECKED = (*OVERLAYS, "replicas")
"""Of the last one no rendering is kept: most of it is that of dev."""
SOURCES = ("base", "components", "overlays")
_HEADER = "# Rendered by `make k8s-render` from the sources with the digest "
_LIMIT_S = 60.0


class RenderError(Exception):
    """kustomize refused, or a rendering does not stand for its sources."""


def digest(folder: Path = FOLDER) -> str:
    """Return the digest of everything that renderings are made from."""
    found = hashlib.sha256()
    for path in sorted(path for name in SOURCES for path in (folder / name).rglob("*") if path.is_file()):
        found.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def render(kustomize: Path, overlay: str, folder: Path = FOLDER) -> str:
    """Return what kustomize makes of an overlay. Raises RenderError."""
    command = [str(kustomize), "build", str(folder / "overlays" / overlay)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    if done.returncode != 0 or done.stderr:
        raise RenderError(f"{overlay}: {done.stderr}")
    return done.stdout


def render_in(namespace: str, kustomize: Path, overlay: str) -> str:
    """Return what kustomize makes of an overlay that says another namespace. Raises RenderError."""
    with tempfile.TemporaryDirectory(prefix="sluice-k8s-") as copy:
        for name in SOURCES:
            shutil.copytree(FOLDER / name, Path(copy, name))
        said = Path(copy, "overlays", overlay, "kustomization.yaml")
        said.write_text(said.read_text().replace(f"\nnamespace: {NAMESPACE}\n", f"\nnamespace: {namespace}\n"))
        return render(kustomize, overlay, Path(copy))


def path_of(overlay: str) -> Path:
    """Return where the rendering of an overlay is kept."""
    return FOLDER / "rendered" / f"{overlay}.yaml"


def keep(overlay: str, rendered: str) -> None:
    """Put a rendering where the tests look for it."""
    path = path_of(overlay)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{_HEADER}{digest()}\n{rendered}")


def kept(overlay: str) -> str:
    """Return the rendering that is kept. Raises RenderError if it is older than its sources."""
    first, rendered = path_of(overlay).read_text().split("\n", 1)
    if first != _HEADER + digest():
        raise RenderError(f"{path_of(overlay)} is older than its sources: run `make k8s-render`")
    return rendered


def objects(rendered: str) -> list[Manifest]:
    """Return the objects of a rendering."""
    return [manifest for manifest in yaml.load_all(rendered, yaml.CSafeLoader) if manifest]


def name_of(manifest: Manifest) -> str:
    """Return kind and name, as people write them."""
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


def settings_of(manifests: list[Manifest]) -> dict[str, str]:
    """Return the settings that all services share."""
    (found,) = [
        manifest["data"]
        for manifest in manifests
        if manifest["kind"] == "ConfigMap" and manifest["metadata"]["name"].startswith("sluice-settings")
    ]
    return dict(found)


def pods(manifests: list[Manifest]) -> Iterator[tuple[str, Manifest]]:
    """Yield the pods that workloads make, and those whose templates lie in config maps: a name, metadata and spec."""
    for manifest in manifests:
        spec = manifest.get("spec") or {}
        if manifest["kind"] == "CronJob":
            spec = spec["jobTemplate"]["spec"]
        if "template" in spec:
            yield name_of(manifest), spec["template"]
        if manifest["kind"] == "ConfigMap":
            for key, text in manifest["data"].items():
                if key.endswith(".yaml") and (inner := yaml.safe_load(text))["kind"] == "Pod":
                    yield f"{name_of(manifest)}/{key}", inner


def containers(pod: Manifest) -> Iterator[Manifest]:
    """Yield all containers of a pod."""
    yield from pod["spec"].get("initContainers", [])
    yield from pod["spec"]["containers"]
