"""The load generator: a process of its own, so that it shares neither an interpreter nor its lock with anything else.

`python -m bench.load HOST:PORT` takes all measurements and writes them as one JSON object to standard output; progress
goes to standard error.
"""

import argparse
import subprocess
import sys

import msgspec

from bench.calls import Calls, measure
from bench.figures import Figures
from bench.show import line


class LoadFailedError(Exception):
    """The load generator ended without figures."""


def measure_warm(address: str, quick: bool) -> dict[str, Figures]:
    """Have all calls made once, a fifth of them, so that programs in Java have compiled what they use; then measure.

    Raises LoadFailedError.
    """
    print("  the same calls as a warm-up, which does not count", file=sys.stderr, flush=True)
    measure_apart(address, quick=True, silent=True)
    return measure_apart(address, quick)


def measure_apart(address: str, quick: bool, silent: bool = False) -> dict[str, Figures]:
    """Run the load generator against a controller and return what it measured. Raises LoadFailedError."""
    options = [*(["--quick"] if quick else []), *(["--silent"] if silent else [])]
    command = [sys.executable, "-m", "bench.load", address, *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        raise LoadFailedError(f"the load generator ended with exit code {done.returncode}")
    return msgspec.json.decode(done.stdout, type=dict[str, Figures])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("address", metavar="HOST:PORT")
    parser.add_argument("--quick", action="store_true", help="a fifth of the time, for a look")
    parser.add_argument("--silent", action="store_true", help="without progress")
    arguments = parser.parse_args()

    def report(name: str, figures: Figures) -> None:
        if not arguments.silent:
            print(line(name, figures), file=sys.stderr, flush=True)

    calls = Calls(arguments.address)
    measured = measure(calls, report, arguments.quick)
    calls.close()
    sys.stdout.buffer.write(msgspec.json.encode(measured))


if __name__ == "__main__":
    main()
