"""A Kubernetes API server of its own for a check: etcd and kube-apiserver, nothing else, on free ports of this machine.

It keeps, validates and defaults objects as in a cluster; nothing runs, for there is no scheduler and no node.
"""

import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

_READY_S = 120.0
_STOP_S = 20.0
_CALL_S = 30.0
_LOOK_AGAIN_S = 0.1
HOST = "127.0.0.1"


class ApiServerError(Exception):
    """The API server did not start; the message ends with its log."""


@contextmanager
def api_server(etcd: list[str], kube_apiserver: list[str], folder: Path) -> Iterator[httpx.Client]:
    """Run an API server, with its data in `folder`; the client speaks to it as an administrator.

    `etcd` and `kube_apiserver` are what runs them, without their arguments.
    """
    token = secrets.token_hex(16)
    (folder / "tokens.csv").write_text(f'{token},check,check,"system:masters"\n')
    key = folder / "service-accounts.key"
    subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True, timeout=_CALL_S)
    client_port, peer_port, port = _free_ports(3)
    with ExitStack() as stack:
        store = f"http://{HOST}:{client_port}"
        stack.enter_context(_running([*_etcd(etcd, folder, store, f"http://{HOST}:{peer_port}")], folder / "etcd.log"))
        command = [
            *kube_apiserver,
            f"--etcd-servers={store}",
            f"--secure-port={port}",
            f"--bind-address={HOST}",
            f"--cert-dir={folder / 'certificates'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            f"--service-account-issuer=https://{HOST}",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
        ]
        log = folder / "kube-apiserver.log"
        process = stack.enter_context(_running(command, log))
        # Its certificate is its own, made a moment ago.
        client = stack.enter_context(
            httpx.Client(
                base_url=f"https://{HOST}:{port}",
                verify=False,
                trust_env=False,
                headers={"Authorization": f"Bearer {token}"},
                timeout=_CALL_S,
            )
        )
        _wait(client, process, log)
        yield client


def _etcd(program: list[str], folder: Path, clients: str, peers: str) -> Iterator[str]:
    yield from (*program, f"--data-dir={folder / 'etcd'}", "--name=check", f"--initial-cluster=check={peers}")
    yield from (f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}")
    yield from (f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}", "--unsafe-no-fsync")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        listening = [stack.enter_context(socket.create_server((HOST, 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in listening]


@contextmanager
def _running(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _wait(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_S
    problem = "not called yet"
    while time.monotonic() < deadline and process.poll() is None:
        try:
            response = client.get("/readyz")
        except httpx.TransportError as error:
            problem = str(error)
        else:
            if response.status_code == httpx.codes.OK:
                return
            problem = response.text
        time.sleep(_LOOK_AGAIN_S)
    raise ApiServerError(f"not ready ({problem}):\n{log.read_text(errors='replace')[-3000:]}")
