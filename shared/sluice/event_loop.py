"""The event loop of a process: uvloop's, which takes two thirds of asyncio's time, and asyncio's on Windows."""

import asyncio
import sys

__all__ = ["run"]

if sys.platform == "win32":
    run = asyncio.run
else:
    from uvloop import run
