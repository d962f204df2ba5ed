"""The tutorial of `examples/at_least_once`, done as it says, from top to bottom."""

import contextlib
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from at_least_once.tally import Summary
from harness import System

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

TUTORIAL = Path(__file__).parents[2] / "docs" / "at-least-once.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SUMMARY = re.compile(r"^\{.*\}$", re.MULTILINE)
LASTS_S = 280.0


def test_the_tutorial_works(system: System, tmp_path: Path) -> None:
    script = "\n".join(BLOCK.findall(TUTORIAL.read_text()))
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ALO_CONTROLLER": system.grpc_address,
        "ALO_REDIS_URL": system.redis_url,
        "ALO_SCOPE": f"docs{uuid4().hex[:8]}",
        "ALO_HEARTBEAT_S": "0.5",
    }
    running = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = running.communicate(timeout=LASTS_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0, f"{out}\n{err}"
    summaries = [msgspec.json.decode(text, type=Summary) for text in SUMMARY.findall(out)]
    calm, rough, keyed, lengths = summaries
    assert calm == Summary(events=5000, different=5000, repeated=0, bad=0, missing=0, sources=1)
    assert '\n    {"events":5000,' in TUTORIAL.read_text()
    for summary in (rough, keyed, lengths):
        assert (summary.different, summary.missing, summary.bad) == (10_000, 0, 0)
    assert (keyed.repeated, lengths.repeated) == (0, 0)
    assert "heartbeats\n" in out
    assert "taken offline: first-" in err
