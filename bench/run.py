"""`make bench`: measures Sluice, then Pravega's own controller on the same data plane, then the load of a journal.

Everything it starts is private to it and gone afterwards, but for the logs. Exit code 1 if a target is missed.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bench import idle, journal_load, show, systems, targets
from bench.figures import Loaded, Measured, Report
from bench.load import LoadFailedError, measure_apart
from sluice_local import jars, setup
from sluice_local.errors import LocalError
from sluice_local.settings import LocalSettings

_RUNS_KEPT = 5
"""The logs of so many runs stay for reading, this one included."""


def main() -> int:
    arguments = _arguments()
    try:
        report = _measure(arguments)
    except (LocalError, LoadFailedError) as error:
        print(error, file=sys.stderr)
        return 2
    if arguments.json is not None:
        arguments.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")
    table = targets.rows(report)
    print(f"\n{targets.render(table)}\n")
    print("Calls: p50 / p99 in ms, one after the other, or calls per second. Ratio: how many times better Sluice is.")
    print("Floor: what a call cannot go below, from its parts below; of floor: how many times that it takes (p50).")
    print(f"Load of the machine (1 minute) at the end of each part: {targets.noise(report)}.")
    for detail in _details(report):
        print(f"\n{detail}")
    misses = targets.missed(table)
    if misses:
        print()
    for miss in misses:
        print(f"MISSED  {miss}")
    return 1 if misses else 0


def _details(report: Report) -> Iterator[str]:
    """The tables behind the table."""
    if report.sluice is not None and report.sluice.parts:
        yield show.parts_table(report.sluice.parts)
        yield show.floors_table(report.sluice.parts)
    if report.sluice is not None and report.sluice.slow:
        yield show.slow_table(report.sluice.slow)
    for measured in (report.sluice, report.peer):
        if measured is not None and measured.cpu is not None:
            yield show.cpu_table(measured.cpu)
    if report.idle is not None:
        yield show.idle_table(report.idle)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description=(__doc__ or "").partition("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--only", choices=("calls", "sluice", "peer", "journal", "idle"), help="only this; calls: of both"
    )
    what.add_argument("--address", metavar="HOST:PORT", help="make the calls on a controller that runs already")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all figures there, too")
    parser.add_argument("--quick", action="store_true", help="a fifth of the calls, for a look")
    parser.add_argument("--spark", action="store_true", help="retention-spark runs beside the calls")
    text = "measure a system without calls, too, for so long; the targets are meant for 300"
    parser.add_argument("--idle", type=float, default=0.0, metavar="SECONDS", help=text)
    arguments = parser.parse_args()
    if arguments.only == "idle" and not arguments.idle:
        parser.error("--only idle needs --idle SECONDS")
    return arguments


def _measure(arguments: argparse.Namespace) -> Report:
    if arguments.address is not None:
        return Report(sluice=Measured(measure_apart(arguments.address, arguments.quick)))
    report = Report()
    settings = LocalSettings()
    if arguments.only in (None, "calls", "peer"):
        jars.fetch_besides(jars.PEER, settings.jars_dir, setup.say)
    folder = settings.home / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    for old in sorted(folder.iterdir(), key=lambda run: run.stat().st_mtime)[: -_RUNS_KEPT + 1]:
        shutil.rmtree(old, ignore_errors=True)
    run = Path(tempfile.mkdtemp(prefix="run-", dir=folder))
    if arguments.only not in ("journal", "idle"):
        with systems.private_system(run / "system", arguments.spark) as (system, after_kafka_s):
            if arguments.only != "peer":
                report.sluice = systems.measure_sluice(system, after_kafka_s, arguments.quick, _say)
            if arguments.only != "sluice":
                report.peer = systems.measure_peer(system, arguments.quick, _say)
    if arguments.only in (None, "journal"):
        report.journal = _load_journal(run / "journal", arguments.quick)
    if arguments.idle:
        report.idle = idle.measure(run / "idle", arguments.idle, _say)
    return report


def _load_journal(home: Path, quick: bool) -> Loaded:
    _say("a journal to load")
    return journal_load.measure(home, quick, _say)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
