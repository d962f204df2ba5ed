"""Builds the images that the contract tests need and that are not there, and tells how long each took.

    python -m containers.build          with `tests` on the path

Ends with status 3 if there is no container engine.
"""

import sys
import time
from collections.abc import Callable

from containers import images
from containers.service_images import IMAGES, service_images
from containers.surroundings import NoEngineError, engine
from sluice_local.settings import LocalSettings


def main() -> int:
    """Returns the exit code."""
    try:
        print(f"images: {engine()}", flush=True)
    except NoEngineError as error:
        print(f"images: there is no container engine: {error}", file=sys.stderr)
        return images.NO_ENGINE
    settings = LocalSettings()
    for recipe in (images.kafka_image, images.zookeeper_image, images.redis_image):
        _timed(lambda recipe=recipe: [images.built(recipe(settings), settings.home / "run")])  # type: ignore[misc]
    _timed(lambda: list(service_images(IMAGES).values()))
    return 0


def _timed(build: Callable[[], list[str]]) -> None:
    began = time.monotonic()
    tags = build()
    print(f"images: {', '.join(tags)}: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
