"""What can be made of a tree by this Python alone: wheels, source archives, the chart, the manifests, checksums."""

import hashlib
import sys
from pathlib import Path

from sluice_release.commands import run
from sluice_release.source import Source, packed

SUMS = "SHA256SUMS"
MANIFESTS = {"base": "base", "components": "components", "overlays": "overlays", "rendered": "rendered"}


def build(source: Source, into: Path) -> None:
    """Write a wheel and a source archive of each distribution, the chart and the manifests into a folder."""
    for folder in source.distributions:
        epoch = {"SOURCE_DATE_EPOCH": str(source.epoch_s)}
        run([sys.executable, "-m", "hatchling", "build", "--directory", into], folder, epoch)
    # As `helm package` names and lays it out.
    packed(source, into / f"sluice-{source.version}.tgz", "sluice", {"deploy/helm/sluice": ""})
    root = f"sluice-manifests-{source.version}"
    folders = {f"deploy/k8s/{name}": name for name in MANIFESTS}
    packed(source, into / f"{root}.tar.gz", root, folders)


def write_sums(folder: Path) -> None:
    """Write the checksums of all that lies in a folder, as `sha256sum --check` reads them."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    lines = []
    for path in files:
        with path.open("rb") as content:
            lines.append(f"{hashlib.file_digest(content, 'sha256').hexdigest()}  {path.name}\n")
    (folder / SUMS).write_text("".join(lines))
