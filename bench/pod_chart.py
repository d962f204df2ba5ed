"""Helm's chart on the node of `make k8s-up`: it takes the services over from the overlay, while clients go on."""

import json
import subprocess
import time
from pathlib import Path

import yaml
from support.controller import unique
from support.decisions import requests_of, sampled, tell

from bench.pods import KAFKA, READY_S, kubectl, tried, wait_for
from harness import eventually
from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.domain.stream.commands import TruncateStream

_CHART = Path(__file__).resolve().parents[1] / "deploy" / "helm" / "sluice"
_CALL_S = 600.0


def taken_over() -> None:
    """All of the chart that needs nothing which the node lacks is installed, one pod of each, and passes its test."""
    services = yaml.safe_load((_CHART / "values.yaml").read_text())["services"]
    for said in services.values():
        said["resources"]["requests"]["cpu"] = "50m"
        said |= {"replicas": 1} if "replicas" in said else {}
    values = {
        "components": dict.fromkeys(("customResources", "commandLine", "backUp", "executors"), True),
        "monitoring": {"dashboard": True},
        "services": services,
    }
    _helm("upgrade", "sluice", str(_CHART), "--install", "--take-ownership", "--wait", "--timeout=9m", given=values)
    for service in services:
        wait_for(service, 1)
    _helm("test", "sluice")


def executors_decide() -> None:
    """Spark's executors are pods, and a stream that keeps nothing is to be truncated."""
    wait_for("retention-spark-executor", 2)
    stream, now = unique("reported"), time.time_ns() // 1_000_000
    tell(KAFKA, sampled(stream, now, 500, RetentionPolicy(RetentionType.SIZE, 0, 1 << 62)))
    eventually(lambda: requests_of(KAFKA, TruncateStream, [stream]), READY_S, f"{stream} is to be truncated")


def looked_over() -> None:
    """In pods of their own `sluice verify` finds nothing that differs, and a back-up is made and read."""
    for job in ("cli", "back-up"):
        kubectl("create", "job", f"{job}-now", f"--from=cronjob/{job}")
    try:
        kubectl("wait", "--for=jsonpath={.status.ready}=1", "job/cli-now", "--timeout=60s")
        found = tried("exec", "job/cli-now", "--", "sluice", "verify")
        assert found.returncode == 0, f"sluice verify: {found.stdout}{found.stderr}"
        kubectl("wait", "--for=condition=Complete", "job/back-up-now", "--timeout=300s")
    finally:
        kubectl("delete", "job", "cli-now", "back-up-now")


def _helm(*arguments: str, given: object = None) -> None:
    command = ["helm", *arguments, *(["--values=-"] if given else [])]
    done = subprocess.run(
        command, input=json.dumps(given), capture_output=True, text=True, timeout=_CALL_S, check=False
    )
    assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stdout}{done.stderr}"
