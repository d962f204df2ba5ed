"""Helpers for tests with real processes: a private system, and waiting for conditions without sleeping."""

from harness.system import System
from harness.wait import eventually, eventually_async

__all__ = ["System", "eventually", "eventually_async"]
