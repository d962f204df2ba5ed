"""The images of the services, built from the code as it is now.

All of the code decides on the tag, so no test runs an image that was built from other code.
"""

import logging
import os
import subprocess
import time
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from testcontainers.core.docker_client import DockerClient

from containers.images import BACKING, REPOSITORY
from sluice_local.home import CLONE

log = logging.getLogger(__name__)

_BUILD = CLONE / "deploy" / "images" / "build"
_MADE_FROM = (
    "deploy/images",
    "shared/pyproject.toml",
    "shared/sluice",
    "services",
    "shared/client",
    "cli",
    "dev",
    "requirements.lock",
)
_CODE = {".py", ".toml", ".lock", ".Dockerfile", ""}
_BUILT_S = 900.0

SERVICES = ("api-gateway", "stream-workflows", "txn-manager", "cluster-manager", "retention-spark")
IMAGES = (*SERVICES, "dev")
"""All that have tests here."""


@cache
def service_images(services: tuple[str, ...]) -> dict[str, str]:
    """The tags of the images by service. Raises BuildFailedError.

    Those that are not there are built, at once, because they have so much in common: what is built in another run of
    the program stands on a base of its own.
    """
    client, version = cast(Any, DockerClient().client), _version()
    wanted = {name: f"{REPOSITORY}/{name}:{version}" for name in services}
    missing = [name for name, tag in wanted.items() if not client.images.list(name=tag)]
    if missing:
        began = time.monotonic()
        _build(missing, version)
        log.info("images of %s built in %.1f s", ", ".join(missing), time.monotonic() - began)
        _remove_others(client, version)
    return wanted


def _build(services: list[str], version: str) -> None:
    # On this machine's own Python unless set otherwise: there may be no registry to ask, which takes its time.
    chosen = {"IMAGES_BASE": os.environ.get("IMAGES_BASE", "host")}
    environment = {**os.environ, **chosen, "IMAGES_PREFIX": REPOSITORY, "IMAGES_VERSION": version}
    done = subprocess.run(
        (str(_BUILD), *services), env=environment, capture_output=True, text=True, timeout=_BUILT_S, check=False
    )
    if done.returncode != 0:
        raise BuildFailedError(f"{_BUILD.relative_to(CLONE)} {services}:\n{done.stdout}{done.stderr}")


def _remove_others(client: Any, version: str) -> None:
    """Remove the services' images of earlier code; what they were built from stays in the builder's cache."""
    for image in client.images.list():
        for tag in image.tags:
            name, _, tagged = tag.rpartition(":")
            if name.startswith(f"{REPOSITORY}/") and tagged != version and name not in BACKING:
                client.images.remove(tag)


class BuildFailedError(Exception):
    """The image could not be built."""


def _version() -> str:
    digest = blake2b(digest_size=8)
    for path in sorted(_sources()):
        digest.update(f"{path.relative_to(CLONE)}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources() -> list[Path]:
    found: list[Path] = []
    for name in _MADE_FROM:
        path = CLONE / name
        found += [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file() and p.suffix in _CODE]
    return found
