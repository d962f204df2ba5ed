"""Questions that tell whether a part is ready.

Each probe asks once and answers with None for "ready" or with the reason why not; waiting is the caller's business. A
probe may be called from any thread, has a time limit of its own, and leaves no connection open.
"""

import http.client
import socket
from collections.abc import Callable

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from sluice_local.settings import HOST

Probe = Callable[[], str | None]

_LIMIT_S = 2.0


def tcp(port: int, host: str = HOST) -> str | None:
    """Ready when its port is open."""
    try:
        socket.create_connection((host, port), timeout=_LIMIT_S).close()
    except OSError as error:
        return f"no connection to {host}:{port}: {error.strerror or error}"
    return None


def spoken(port: int, question: bytes, expected: bytes) -> str | None:
    """Ready when a line sent is answered with something that begins as expected."""
    try:
        with socket.create_connection((HOST, port), timeout=_LIMIT_S) as connection:
            connection.sendall(question)
            answer = connection.recv(len(expected))
    except OSError as error:
        return f"no answer from {HOST}:{port}: {error.strerror or error}"
    return None if answer == expected else f"{HOST}:{port} answers {answer!r}"


def redis(port: int) -> str | None:
    """Ready when the data is loaded."""
    return spoken(port, b"PING\r\n", b"+PONG\r\n")


def zookeeper(port: int) -> str | None:
    """Ready when the server serves requests; `srvr` is the one short command it answers by default."""
    return spoken(port, b"srvr", b"Zookeeper version")


def http_ok(port: int, path: str) -> str | None:
    """Ready when the page is answered with 200."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_LIMIT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        body = response.read(300).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        return f"http://{HOST}:{port}{path}: {error}"
    finally:
        connection.close()
    return None if response.status == http.HTTPStatus.OK else f"{path} answers {response.status}: {body}"


def kafka(port: int) -> str | None:
    """Ready when the broker is a member of its own cluster, which is later than the opening of its port."""
    # Without this look first, librdkafka would report a broker that has not started yet on standard error.
    if (reason := tcp(port)) is not None:
        return reason
    client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
    try:
        brokers = client.list_topics(timeout=_LIMIT_S).brokers
    except KafkaException as error:
        return f"no metadata from {HOST}:{port}: {error}"
    return None if brokers else f"the broker at {HOST}:{port} has not joined yet"
