"""Writes the Python of `proto/controller.proto` anew, into `sluice/controller_api` or the folder given as argument.

The result is checked in, so that running the service needs no compiler; a test generates it again and compares.
"""

import sys
import sysconfig
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

HERE = Path(__file__).resolve().parent
PACKAGE = "sluice/controller_api"


def generate(root: Path) -> None:
    """Write the package `sluice.controller_api` below `root`; raises RuntimeError if the compiler refuses."""
    root.joinpath(PACKAGE).mkdir(parents=True, exist_ok=True)
    plugin = Path(sysconfig.get_path("scripts")) / "protoc-gen-mypy_grpc"
    status = protoc.main(
        [
            "protoc",
            f"--proto_path={PACKAGE}={HERE / 'proto'}",
            f"--plugin=protoc-gen-mypy_grpc={plugin}",
            f"--python_out={root}",
            f"--pyi_out={root}",
            f"--grpc_python_out={root}",
            f"--mypy_grpc_out=quiet:{root}",
            f"{PACKAGE}/controller.proto",
        ]
    )
    if status != 0:
        raise RuntimeError(f"protoc ended with status {status}")
    root.joinpath(PACKAGE, "__init__.py").write_text('"""Made by `generate.py`; not to be edited."""\n')


if __name__ == "__main__":
    generate(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
