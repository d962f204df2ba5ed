"""`python -m bench.fuzz --minutes 10`: a gateway is sent what no client sends, without credentials, while one reads.

A system of its own, with authentication on: Pravega's password file, one account. Broken HTTP/2, gRPC and HTTP
(`tests/support/fuzzing.py`) come over several connections at once, from a seed. Exit code 1 if the gateway ends or
grows, a call of the reader fails, the gateway is not ready at the end, its log has a defect, an answer tells something
of its inside or of the password, or anything was changed. Times of the reader stand beside those without an attack.
"""

import argparse
import json
import os
import sys
import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import grpc
from support.fuzzing import GRPC, HTTP, Attack, Conversation
from support.health import await_ready
from support.wait import eventually

from bench.figures import quantile
from bench.processor_time import memory_mib
from harness import System
from sluice.addresses import host_and_port
from sluice.controller_api import controller_pb2 as pb
from sluice.controller_api.controller_pb2_grpc import ControllerServiceStub
from sluice.security.passwords import hash_password
from sluice_local.settings import LocalSettings

GATEWAY = "api-gateway-0"
PASSWORD = "canary-of-the-fuzz"
PER_S = 20.0
ALONE_S = 15.0
DEADLINE_S = 10.0
GROWTH_MIB = 64
"""More than this, from the end of the first tenth to the end, is growth."""

_OURS = ("api_gateway", "sluice", "uvicorn", "asyncio")
_INSIDE = (b"Traceback", b"site-packages", b'File "', PASSWORD.encode(), b64encode(f"reader:{PASSWORD}".encode()))


class Reader:
    """Reads a stream's segments at a steady rate with right credentials; `times` in s of each call."""

    def __init__(self, address: str) -> None:
        credentials = b64encode(f"reader:{PASSWORD}".encode()).decode()
        self._metadata = (("authorization", f"Basic {credentials}"),)
        self._stub = ControllerServiceStub(grpc.insecure_channel(address))
        self.times: list[float] = []
        self.failures: list[str] = []

    def prepare(self) -> None:
        """Make the stream."""

        def created() -> bool:
            scope = pb.ScopeInfo(scope="fuzz")
            reply = self._stub.createScope(scope, metadata=self._metadata, timeout=DEADLINE_S)
            return reply.status in (pb.CreateScopeStatus.SUCCESS, pb.CreateScopeStatus.SCOPE_EXISTS)

        eventually(created, 120, "a scope can be created")
        policy = pb.ScalingPolicy(scaleType=pb.ScalingPolicy.FIXED_NUM_SEGMENTS, minNumSegments=2)
        config = pb.StreamConfig(streamInfo=pb.StreamInfo(scope="fuzz", stream="st"), scalingPolicy=policy)
        self._stub.createStream(config, metadata=self._metadata, timeout=120)

    def names(self) -> list[str]:
        """All scopes, and all streams of ours."""
        token = pb.ContinuationToken()
        scopes = self._stub.listScopes(
            pb.ScopesRequest(continuationToken=token), metadata=self._metadata, timeout=DEADLINE_S
        )
        wanted = pb.StreamsInScopeRequest(scope=pb.ScopeInfo(scope="fuzz"), continuationToken=token)
        streams = self._stub.listStreamsInScope(wanted, metadata=self._metadata, timeout=DEADLINE_S)
        return [*scopes.scopes, *(stream.stream for stream in streams.streams)]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """It reads inside."""
        ended = threading.Event()
        thread = threading.Thread(target=self._read, args=(ended,))
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _read(self, ended: threading.Event) -> None:
        info = pb.StreamInfo(scope="fuzz", stream="st", accessOperation=pb.StreamInfo.READ)
        while not ended.wait(1 / PER_S):
            began = time.perf_counter()
            try:
                self._stub.getCurrentSegments(info, metadata=self._metadata, timeout=DEADLINE_S)
            except grpc.RpcError as error:
                self.failures.append(str(error.code()))
            self.times.append(time.perf_counter() - began)

    def taken(self) -> str:
        """Quantiles of what was read since the last time, in ms."""
        times, self.times = self.times, []
        return ", ".join(f"{name} {1000 * quantile(times, share):.1f} ms" for name, share in QUANTILES)


QUANTILES = (("median", 0.5), ("99 of 100", 0.99), ("longest", 1.0))


def run(system: System, minutes: float, seed: int) -> list[str]:
    """What is wrong, in words."""
    reader = Reader(system.grpc_address)
    reader.prepare()
    before, pid = reader.names(), system.pid(GATEWAY)
    with reader.reading():
        time.sleep(ALONE_S)
        _say(f"reader alone: {reader.taken()}")
        with Attack(_targets(system), seed, _tells_nothing) as attack:
            time.sleep(minutes * 6)
            warm, _ = memory_mib(pid)
            time.sleep(minutes * 54)
            _say(f"reader meanwhile: {reader.taken()}; {attack.conversations:,} conversations, seed {seed}")
    await_ready(system, GATEWAY)
    now, most = memory_mib(pid)
    _say(f"memory: {warm} MiB after a tenth, {now} at the end, {most} at most")
    return [
        *(attack.wrong[:10]),
        *(f"the reader's call failed: {code}" for code in sorted(set(reader.failures))),
        *([f"the gateway grew from {warm} to {now} MiB"] if now - warm > GROWTH_MIB else []),
        *(["the gateway was started anew"] if system.pid(GATEWAY) != pid else []),
        *([f"something was changed: {before} is {reader.names()}"] if reader.names() != before else []),
        *_defects(system.log(GATEWAY)),
    ]


def _targets(system: System) -> dict[tuple[str, int], tuple[Conversation, ...]]:
    return {host_and_port(system.grpc_address): GRPC, host_and_port(system.rest_url.removeprefix("http://")): HTTP}


def _tells_nothing(answer: bytes) -> None:
    for inside in _INSIDE:
        assert inside not in answer, answer[:300]


def _defects(log: Path) -> Iterator[str]:
    """Lines of the log that say that something of ours is wrong, or something secret."""
    for line in log.read_text(errors="replace").splitlines():
        if PASSWORD in line:
            yield "the log has the password"
        elif line.startswith('{"time":'):
            said = json.loads(line)
            if said["level"] in ("error", "critical") and said["logger"].startswith(_OURS):
                yield f"the log says: {said['message']} {said.get('error', '')}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    folder = LocalSettings().home / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    home = Path(mkdtemp(prefix="fuzz-", dir=folder))
    accounts = home / "accounts"
    accounts.write_text(f"reader:{hash_password(PASSWORD)}:prn::*,READ_UPDATE\n")
    os.environ |= {"SLUICE_AUTH_ENABLED": "true", "SLUICE_AUTH_ACCOUNTS": str(accounts)}
    system = System(home, segment_stores=1)
    try:
        system.up()
        wrong = run(system, arguments.minutes, arguments.seed)
    finally:
        system.down()
    for line in wrong:
        _say(line)
    return 1 if wrong else 0


def _say(line: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
