"""Helpers for tests with real processes: a private system, and waiting for conditions without sleeping."""

from support.wait import eventually, eventually_async

from harness.system import System

__all__ = ["System", "eventually", "eventually_async"]
