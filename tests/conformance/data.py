"""Steps on the data plane: what a client writes, and what became of the segments."""

from typing import Any

from conformance.case import Step, step
from conformance.run import Run


def write(length: int, segment: int = 0, stream: str = "st") -> Step:
    """Make a segment longer by so many bytes, at least 8; gives how long it is then."""

    async def act(run: Run) -> Any:
        return await run.target.write(run.scope("sc"), stream, segment, length)

    return step(f"write {length} bytes", act).gives(length)


def fate(segment: int, stream: str = "st") -> Step:
    """Gives `open`, `sealed` or `gone`, and the start if it is not 0."""

    async def act(run: Run) -> Any:
        return await run.target.fate(run.scope("sc"), stream, segment)

    return step(f"fate of segment {segment}", act)
