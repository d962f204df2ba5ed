"""One local system: all its parts, started in order and in parallel, stopped in reverse.

`System` is the library that the command line and the tests share. It restarts nothing by itself: a part that ends is
shown as ended.

Concurrency: every method may be called from any thread; two calls about the *same* part must not overlap. The table of
children is guarded by one lock that is never held while waiting.
"""

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sluice_local import security
from sluice_local.errors import LocalError, NotReadyInTime, PartFailed
from sluice_local.part import Part, StopRank
from sluice_local.parts import parts_of
from sluice_local.ports import require_free
from sluice_local.process import Child, ProcessRecord, Spawner, log_tail
from sluice_local.running import process_record_path
from sluice_local.settings import LocalSettings, variable_of

_POLL_S = 0.05
_MAX_POLL_S = 0.25
_SECONDS = re.compile(r"\d+ s\b")
_POLLS = 20
"""A part is looked at again after that fraction of the time it took so far: each look takes time from the start."""
Report = Callable[[str], None]


def say_nothing(_line: str) -> None:
    """Report nothing."""


class _Progress:
    """What the parts lack that are waited for, and when that was news last. May be used from any thread."""

    def __init__(self) -> None:
        self._lacks: dict[str, str] = {}
        self._said: set[tuple[str, str]] = set()
        self._changed_at = time.monotonic()

    def lacks(self, name: str, reason: str) -> None:
        """What was said before is no progress, nor are seconds in a reason: they say how long it has been so."""
        said = name, _SECONDS.sub("", reason)
        if said not in self._said:
            self._said.add(said)
            self._changed_at = time.monotonic()
        self._lacks[name] = reason

    def lacking(self) -> Mapping[str, str]:
        """What the parts lack that are not ready."""
        return {name: reason for name, reason in sorted(self._lacks.items()) if reason}

    @property
    def still_s(self) -> float:
        """For how long there has been no news."""
        return time.monotonic() - self._changed_at


@dataclass(frozen=True, slots=True)
class _Start:
    """One start of all parts: when it began, and which parts are ready by now."""

    began: float
    ready: Mapping[str, threading.Event]
    cancelled: threading.Event
    waits_for_late: bool
    progress: _Progress


class System:
    """The parts of one local system and their processes."""

    def __init__(self, settings: LocalSettings, report: Report = say_nothing) -> None:
        security.make_once(settings)
        self.settings = settings
        self.parts: dict[str, Part] = {part.name: part for part in parts_of(settings)}
        self._report = report
        self._lock = threading.Lock()
        self._children: dict[str, Child] = {}
        self._wanted: set[str] = set()
        self._closing = threading.Event()
        self._spawner = Spawner()

    # --- all parts

    def start(self, *, wait_for_late: bool = True) -> None:
        """Start everything that does not run and return when all is ready, also what ran before.

        It is given up when nothing has changed for the time limit, neither that a part is ready nor what one lacks. A
        part that may be late is then left to itself, without `wait_for_late` as soon as it runs. Raises PortTaken
        before anything is started, or PartFailed for the first part that fails; what was started stays, so that the
        caller can look at it, until `close`.
        """
        parts = list(self.parts.values())
        require_free([claim for part in parts if not self.is_running(part.name) for claim in part.claims])
        ready = {part.name: threading.Event() for part in parts}
        start = _Start(time.monotonic(), ready, threading.Event(), wait_for_late, _Progress())
        with ThreadPoolExecutor(max(1, len(parts)), thread_name_prefix="start") as pool:
            outcomes = [pool.submit(self._start_in_turn, part, start) for part in parts]
            failures = [error for outcome in outcomes if (error := outcome.exception()) is not None]
        # A part that gave up because another one failed is not the cause.
        for failure in sorted(failures, key=lambda error: isinstance(error, _GivenUp)):
            raise failure

    def close(self) -> None:
        """Stop everything, those first that use the others, and leave no process behind."""
        self._closing.set()
        for rank in StopRank:
            self.stop_all(rank)
        self._spawner.close()

    def stop_all(self, rank: StopRank) -> None:
        """Stop the parts of a rank together."""
        names = [part.name for part in self.parts.values() if part.stop_rank is rank]
        with ThreadPoolExecutor(max(1, len(names)), thread_name_prefix="stop") as pool:
            list(pool.map(self.stop_part, names))

    def abandon_start(self) -> None:
        """Have a `start` on another thread give up; only `close` makes sense afterwards."""
        self._closing.set()

    def kill_all(self) -> None:
        """End every process by force, at once; `close` afterwards is quick."""
        with self._lock:
            children = list(self._children.values())
        self._closing.set()
        for child in children:
            child.signal(signal.SIGKILL)

    # --- one part

    def start_part(self, name: str) -> None:
        """Start one part that does not run; return before it is ready."""
        part = self.parts[name]
        if self.is_running(name):
            raise PartFailed(f"{name} runs already")
        try:
            for path, text in part.files.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            part.prepare()
            child = self._spawner.spawn(part.command, {**os.environ, **part.environment}, part.folder, part.log)
        except LocalError:
            raise
        except Exception as error:
            raise PartFailed(f"{name} cannot be started: {type(error).__name__}: {error}") from error
        with self._lock:
            self._children[name] = child
            self._wanted.add(name)
        ProcessRecord(child.pid, child.start_ticks).write(self._record_path(name))

    def wait_ready(self, name: str, deadline_s: float | None = None) -> None:
        """Wait until the part is ready; raise PartFailed if it ends before, or is not ready in time."""
        self._wait_ready(self.parts[name], deadline_s or self.settings.start_timeout_s, threading.Event(), _Progress())

    def stop_part(self, name: str) -> None:
        """End the part gently and wait for its end; nothing happens if it does not run."""
        with self._lock:
            child = self._children.get(name)
            self._wanted.discard(name)
        if child is not None:
            child.stop(self.settings.stop_timeout_s)
        self._record_path(name).unlink(missing_ok=True)

    def signal_part(self, name: str, number: int) -> None:
        """Send a signal to a part that runs; with SIGKILL, wait for its end."""
        child = self.child(name)
        with self._lock:
            if number == signal.SIGKILL:
                self._wanted.discard(name)
        if number == signal.SIGKILL:
            child.kill()
        else:
            child.signal(number)

    def child(self, name: str) -> Child:
        """Return the process of a part."""
        with self._lock:
            if (child := self._children.get(name)) is None:
                raise PartFailed(f"{name} was never started")
            return child

    def is_running(self, name: str) -> bool:
        """Whether the part's process exists; ready or not, frozen or not."""
        with self._lock:
            child = self._children.get(name)
        return child is not None and child.exit_code is None

    def ended(self) -> Sequence[str]:
        """Return the parts that ended without having been stopped."""
        with self._lock:
            wanted = {name: self._children[name] for name in self._wanted}
        return sorted(name for name, child in wanted.items() if child.exit_code is not None)

    def obituary(self, name: str) -> str:
        """Return what is known about the end of a part."""
        part = self.parts[name]
        return (
            f"{name} ended with exit code {self.child(name).exit_code}; log {part.log}, its last lines:\n"
            + _indented(log_tail(part.log))
        )

    # --- inside

    def _start_in_turn(self, part: Part, start: _Start) -> None:
        try:
            for name in part.starts_after:
                self._await_event(start.ready.get(name), part, start)
            if start.cancelled.is_set() or self._closing.is_set():
                raise _GivenUp(f"{part.name} was not started")
            if not self.is_running(part.name):
                self.start_part(part.name)
            elif part.probe.look().ready:
                start.ready[part.name].set()
                return
            if part.may_be_late and not start.waits_for_late:
                self._report(f"{part.name:<20} follows, nothing else needs it   {part.address}")
                return
            self._wait_ready(part, self.settings.start_timeout_s, start.cancelled, start.progress)
        except NotReadyInTime as error:
            if part.may_be_late:
                self._report(f"{error}\nnothing else needs {part.name}, so the start goes on without it")
                return
            start.cancelled.set()
            raise
        except BaseException:
            start.cancelled.set()
            raise
        start.ready[part.name].set()
        start.progress.lacks(part.name, "")
        self._report(f"{part.name:<20} ready after {time.monotonic() - start.began:5.1f} s   {part.address}")

    def _await_event(self, event: threading.Event | None, part: Part, start: _Start) -> None:
        while event is not None and not event.wait(_POLL_S):
            if start.cancelled.is_set() or self._closing.is_set():
                raise _GivenUp(f"{part.name} was not started")

    def _wait_ready(self, part: Part, limit_s: float, cancelled: threading.Event, progress: _Progress) -> None:
        child = self.child(part.name)
        began = time.monotonic()
        while (reason := part.probe.problem()) is not None:
            waited_s = time.monotonic() - began
            progress.lacks(part.name, reason)
            if child.wait(min(max(_POLL_S, waited_s / _POLLS), _MAX_POLL_S)):
                raise PartFailed(self.obituary(part.name))
            if progress.still_s > limit_s:
                raise NotReadyInTime(self._standing_still(progress, limit_s))
            if cancelled.is_set() or self._closing.is_set():
                raise _GivenUp(f"{part.name} was stopped before it was ready: {reason}")
        # The port may be another process's while our own process is already gone.
        if child.exit_code is not None:
            raise PartFailed(self.obituary(part.name))

    def _standing_still(self, progress: _Progress, limit_s: float) -> str:
        lacks = progress.lacking()
        lines = (f"    {name}: {reason}; log {self.parts[name].log}" for name, reason in lacks.items())
        setting = variable_of("start_timeout_s")
        return "\n".join((f"not ready, and nothing has changed for {limit_s:g} s ({setting}):", *lines))

    def _record_path(self, name: str) -> Path:
        return process_record_path(self.settings.home, name)


class _GivenUp(PartFailed):
    """A part whose start was abandoned because of something else."""


def addresses(parts: Iterable[Part]) -> str:
    """Return the addresses of all parts, one a line."""
    return "\n".join(f"  {part.name:<20} {part.address}" for part in parts)


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
