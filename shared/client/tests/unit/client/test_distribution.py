"""The wheel as a program of a user meets it: in an environment that has nothing else."""

import os
import re
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canonical
from support.wheels import build, required

PROGRAM = """\
import asyncio
from typing import assert_type

from sluice_client import Client, JsonCodec, Revision, RevisionedStream, StateSynchronizer, open_client


async def count(client: Client) -> int:
    stream = await client.revisioned_stream("demo", "log")
    counter = StateSynchronizer(
        stream, initial=int, apply=int.__add__, state_codec=JsonCodec(int), update_codec=JsonCodec(int)
    )
    assert_type(counter, StateSynchronizer[int, int])
    return await counter.update(lambda state: [state + 1])


async def main() -> None:
    async with open_client("memory:") as client:
        assert_type(await client.controller.create_scope("demo"), bool)
        await client.controller.create_stream("demo", "log")
        stream = assert_type(await client.revisioned_stream("demo", "log"), RevisionedStream)
        print(await count(client))
        appended = assert_type(await stream.append_if(b"first", await stream.tail()), Revision | None)
        print(appended is not None)


asyncio.run(main())
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """The Python of a new environment into which pip has installed our wheels.

    Nothing is fetched: the packages of others that they require are links to those of this environment.
    """
    wheels, environment = tmp_path / "wheels", tmp_path / "environment"
    built = [build(project, wheels) for project in ("shared", "shared/client")]
    venv.create(environment, with_pip=False, symlinks=True)
    (site,) = environment.glob("lib/python*/site-packages")
    ours = {canonical(wheel.metadata.name) for wheel in built}
    others = [requirement for wheel in built for requirement in required(wheel.requirements, ["grpc"])]
    link([requirement for requirement in others if canonical(requirement.name) not in ours], site)
    install = ["--python", str(environment), "install", "--quiet", "--no-index", "--find-links", str(wheels)]
    run([sys.executable, "-m", "pip", *install, "sluice-streams-client"], tmp_path)
    return environment / "bin" / "python"


def test_a_program_of_a_user_runs_and_is_typed_strictly(python: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    assert run([str(python), str(program)], tmp_path) == "1\nTrue\n"
    strictly = ["--strict", "--config-file=", "--python-executable", str(python), str(program)]
    assert run([sys.executable, "-m", "mypy", *strictly], tmp_path) == "Success: no issues found in 1 source file\n"


def run(command: list[str], folder: Path) -> str:
    """What a command prints, which has to succeed; of this environment it sees nothing of ours."""
    environment = {name: value for name, value in os.environ.items() if not re.match("PYTHON|MYPY|PIP", name)}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def link(requirements: list[Requirement], site: Path) -> None:
    """Put links to installed distributions, and to what they require themselves, into a folder of packages."""
    waiting, seen = list(requirements), set[str]()
    while waiting:
        requirement = waiting.pop()
        name = canonical(requirement.name)
        if name in seen:
            continue
        seen.add(name)
        distribution = metadata.distribution(name)
        for file in distribution.files or []:
            if ".." not in file.parts:
                (site / file).parent.mkdir(parents=True, exist_ok=True)
                (site / file).symlink_to(Path(str(file.locate())).resolve())
        waiting += required(map(Requirement, distribution.requires or []))
