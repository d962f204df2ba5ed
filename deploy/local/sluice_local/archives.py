"""Archives of the Java programs' classes: a program that maps one starts with half of the processor time.

Most of what a Java program does at its start is to look for its classes, parse and verify them. Java can write down
what came of it when a program ends (JEP 350, dynamic archives). So a whole system runs once, on its own ports and in a
folder that goes, and each of its programs leaves an archive. One fits one Java and one class path, with the order and
the times of its jars: Java does without one that does not fit. The set-up makes them anew when Java or the jars change.

Run as `python -m sluice_local.archives HOME JARS`. One at a time on a folder of jars: the set-up holds a lock.
"""

import os
import shutil
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from sluice_local import bookie, java, kafka, segment_store, zookeeper
from sluice_local.errors import LocalError
from sluice_local.ports import find_block
from sluice_local.settings import LocalSettings
from sluice_local.supervisor import say
from sluice_local.system import System

_STARTS_S = 180.0
_ENDS_S = 60.0
"""It takes some seconds to write an archive."""
_PORTS = (
    "kafka_port",
    "kafka_controller_port",
    "redis_port",
    "zookeeper_port",
    "bookie_port",
    "segment_store_port",
    "grpc_port",
    "rest_port",
    "page_port",
    "health_port",
)
_HEALTH_PORTS = 3
PROGRAMS = {
    kafka.NAME: kafka.NAME,
    zookeeper.NAME: zookeeper.NAME,
    bookie.NAME: bookie.NAME,
    f"{segment_store.KIND}-0": segment_store.KIND,
}
"""The parts that leave an archive, each with its archive's name."""


def make(home: Path, jars_dir: Path) -> None:
    """Run a system once and keep the archives it leaves; raise LocalError if it does not start, or leaves none."""
    folder = java.archive(jars_dir, kafka.NAME).parent
    new = folder.with_name(f"{folder.name}.new")
    # A program that maps an archive leaves none.
    for former in (folder, new):
        shutil.rmtree(former, ignore_errors=True)
    new.mkdir()
    with tempfile.TemporaryDirectory(dir=home, prefix="archives-") as run:
        _run_once(_settings(Path(run), jars_dir), new)
    if missing := [name for name in PROGRAMS.values() if not (new / f"{name}.jsa").exists()]:
        raise LocalError(f"no archive of classes was left by {', '.join(missing)}")
    new.rename(folder)


def _settings(run: Path, jars_dir: Path) -> LocalSettings:
    """The defaults without Spark, on ports that are free."""
    first = find_block(len(_PORTS) + _HEALTH_PORTS).start
    ports: dict[str, Any] = {name: first + index for index, name in enumerate(_PORTS)}
    times: dict[str, Any] = {"start_timeout_s": _STARTS_S, "stop_timeout_s": _ENDS_S}
    return LocalSettings(home=run, jars=jars_dir, retention_sparks=0, **times, **ports)


def _run_once(settings: LocalSettings, archives: Path) -> None:
    system = System(settings, say)
    for part, name in PROGRAMS.items():
        program, *rest = system.parts[part].command
        command = (program, f"-XX:ArchiveClassesAtExit={archives / name}.jsa", *rest)
        system.parts[part] = replace(system.parts[part], command=command)
    try:
        system.start()
    finally:
        system.close()


def main() -> int:
    """Make the archives for the folder of jars that the command line names."""
    home, jars_dir = map(Path, sys.argv[1:])
    # What is set for the user's own system, such as the address of another Kafka, is not for this one.
    for name in [
        name for name in os.environ if name.startswith(("SLUICE_", "SEGMENT_STORES", "KAFKA_BROKERS", "SECURE"))
    ]:
        del os.environ[name]
    try:
        make(home, jars_dir)
    except LocalError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
