"""Programs of `examples/at_least_once` as processes of their own, that can be stopped, killed, frozen and thawed."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from harness import eventually
from sluice_local import launch

ENDS_S = 90.0


class Program:
    """One process; what it says is in the file `log`."""

    def __init__(self, log: Path, environment: Mapping[str, str], *command: str) -> None:
        self.log = log
        launcher = [sys.executable, "-I", "-S", launch.__file__, str(os.getpid())]
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [*launcher, *command],
                env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
                cwd=Path(__file__).parents[1],
                stdout=file,
                stderr=file,
            )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def says(self, text: str, deadline_s: float) -> None:
        """Waits until it says this. Raises AssertionError if it does not, or ends without."""
        eventually(lambda: text in self.log.read_text() or not self.running, deadline_s, f"it says {text!r}")
        said = self.log.read_text()
        assert text in said, f"ended with {self._process.returncode}: {said[-2000:]}"

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        """Ends it with kill -9, frozen or not."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """Has it end by itself and returns the exit code."""
        self._process.terminate()
        return self.wait()

    def wait(self, deadline_s: float = ENDS_S) -> int:
        """Waits for the end and returns the exit code."""
        try:
            return self._process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"goes on after {deadline_s} s: {self.log.read_text()[-2000:]}") from None


class Crew:
    """Programs with the same settings, given by their environment variables; all are gone after the block."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {f"ALO_{name.upper()}": value for name, value in settings.items()}
        self._programs: list[Program] = []

    def start(self, *arguments: str) -> Program:
        """A program of the example."""
        return self.run(arguments[0], sys.executable, "-m", "at_least_once", *arguments)

    def run(self, name: str, *command: str) -> Program:
        """Any other program."""
        log = self._folder / f"{len(self._programs):02d}-{name}.log"
        self._programs.append(Program(log, self._environment, *command))
        return self._programs[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for program in self._programs:
            program.kill()
