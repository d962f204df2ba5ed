"""The fixtures of these tests; `integration` has some of them, too."""

from page.fixtures import chromium, empty, sample, screenshots, slowness, visit

__all__ = ["chromium", "empty", "sample", "screenshots", "slowness", "visit"]
