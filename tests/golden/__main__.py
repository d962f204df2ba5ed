"""Record the golden journals of the version that is being made: `python -m golden`.

Two stories cover every event and every workflow; the simulated faults add entries that are void. Requests are those of
the documents. With `--results` only what the journals come to is written anew, for a change of how states are stored;
the journals, and the snapshots of releases, stay as they are. `--show` prints the states that they come to, to compare
two trees by.
"""

import argparse
import itertools
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path

import msgspec
from simulation.lives import run
from simulation.scopes import run as scopes_run
from simulation.seeds import quiet
from simulation.txn import run as txn_run

from golden import requests
from golden.journals import FOLDER, Folded, Golden, Line, all_golden, lines_of
from golden.restored import BEGIN_S, restored
from golden.stage import Stage
from golden.stories import everything
from sluice.engine.fold import Outcome
from sluice.kafka.topics import JOURNAL
from sluice.memory.broker import MemoryBroker


def version_made() -> str:
    """The version that this tree becomes."""
    project = Path(__file__).resolve().parents[2] / "shared" / "pyproject.toml"
    return str(tomllib.loads(project.read_text())["project"]["version"])


def record() -> dict[str, list[Line]]:
    """What services write now, by the name of the story."""
    with quiet():
        return {
            "every-event": _journal(run(_every_event())),
            "restored": _journal(run(_restored(), BEGIN_S)),
            "scopes-with-faults": _first(_scopes, {Outcome.STALE, Outcome.DUPLICATE}),
            "transactions-with-stale-entries": _first(_transactions, {Outcome.STALE}),
            "transactions-with-duplicates": _first(_transactions, {Outcome.DUPLICATE}),
        }


def _first(journal_of: Callable[[int], list[Line]], outcomes: set[Outcome]) -> list[Line]:
    """The journal of the first simulated run with faults that has entries of these outcomes."""
    journals = map(journal_of, itertools.count(1))
    return next(lines for lines in journals if outcomes <= Folded(lines).kinds_of_outcomes)


def _scopes(seed: int) -> list[Line]:
    return _journal(scopes_run.run_seed(seed).broker)


def _transactions(seed: int) -> list[Line]:
    return _journal(txn_run.run_seed(seed).plant.broker)


def _journal(broker: MemoryBroker) -> list[Line]:
    return lines_of(broker.logs(JOURNAL.name))


async def _every_event() -> MemoryBroker:
    stage = Stage()
    await everything(stage)
    return stage.broker


async def _restored() -> MemoryBroker:
    return (await restored()).broker


def _write_results(golden: Golden) -> None:
    folded = Folded(golden.lines())
    golden.result.write_text(folded.result())
    if golden.version == version_made():
        golden.snapshot.write_bytes(msgspec.msgpack.encode(folded.snapshot()))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m golden", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--results", action="store_true", help="only fold all journals and write what they come to")
    parser.add_argument("--show", action="store_true", help="only print the states that all journals come to")
    arguments = parser.parse_args()
    if arguments.show:
        for golden in all_golden():
            print(f"{golden.version} {golden.name}:\n{Folded(golden.lines()).states()}")
        return
    if arguments.results:
        for golden in all_golden():
            _write_results(golden)
        return
    version, journals = version_made(), record()
    shutil.rmtree(FOLDER / version, ignore_errors=True)
    (FOLDER / version).mkdir(parents=True)
    for name, lines in journals.items():
        golden = Golden(version, name)
        golden.journal.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
        _write_results(golden)
        print(f"{golden.journal.relative_to(FOLDER)}: {len(lines)} records")
    (FOLDER / version / requests.NAME).write_bytes(requests.written())


if __name__ == "__main__":
    main()
