"""A process with a client in another language, which runs scenarios one after the other, as they are asked for.

It reads their names from its standard input, and answers each with what there is to say about it, and a line that
begins with `=== passed` or `=== failed` (`tests/java`, `tests/rust`). Blocking.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from sluice_local.process import log_tail

_END = "=== "


class ScenarioClient:
    """As a context it runs inside and is gone after; it ends with the test runner too.

    `environment` is added to that of the tests; `log` has what it says beside its answers.
    """

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self._command = command
        self._environment = {**os.environ, **environment}
        self._log = log

    def __enter__(self) -> Self:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                bufsize=1,
                env=self._environment,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def problem(self, scenario: str) -> str | None:
        """Run a scenario; return what it says if it failed. It gives itself up in time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{scenario}\n")
        lines: list[str] = []
        for line in self._process.stdout:
            if line.startswith(_END):
                return None if line.startswith(f"{_END}passed") else "".join(lines)
            lines.append(line)
        return f"the client ended:\n{''.join(lines)}{log_tail(self._log)}"
