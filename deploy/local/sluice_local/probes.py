"""Questions that tell whether a part is ready.

A probe is data, so that the supervisor can write it down for other processes. It asks once; waiting is the caller's
business. It may be used from any thread, has a time limit of its own, and leaves no connection open.
"""

import http.client
import json
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from sluice_local.home import HOST, NAME

_LIMIT_S = 2.0
_PAGE_BYTES = 65_536


class ProbeKind(StrEnum):
    """What is asked."""

    TCP = "tcp"
    """Ready when a server listens."""
    REDIS = "redis"
    """Ready when the data is loaded."""
    ZOOKEEPER = "zookeeper"
    """Ready when the server serves requests."""
    KAFKA = "kafka"
    """Ready when the broker is a member of its own cluster, which is later than the opening of its port."""
    SERVICE = "service"
    """Ready when one of our services says so on its health port."""


class Look(NamedTuple):
    """What a probe saw. `remark`: why the part is not ready, or what is wrong with it although it is; else empty."""

    ready: bool
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question to a port of this machine."""

    kind: ProbeKind
    port: int
    authority: str = ""
    """The file with the authority of the part's certificate; empty: it has none, the connection is open."""
    credentials: str = ""
    """Kafka: the file with the configuration of clients. Redis: the file with its password. Empty: none is needed."""
    host: str = ""
    """Where the part is reached, if it is not on loopback alone."""

    @classmethod
    def of(cls, described: Mapping[str, Any]) -> "Probe":
        """Return the probe that was written down as JSON."""
        return cls(**{**described, "kind": ProbeKind(described["kind"])})

    def look(self) -> Look:
        """Ask once."""
        match self.kind:
            case ProbeKind.TCP:
                return _unless(_tcp(self.host or HOST, self.port))
            case ProbeKind.REDIS:
                return _unless(_redis(self.port, self.credentials))
            case ProbeKind.ZOOKEEPER:
                # The one short command that it answers by default.
                return _unless(_spoken(self.port, b"srvr", b"Zookeeper version", self.authority))
            case ProbeKind.KAFKA:
                return _unless(_kafka(self.port, self.credentials))
            case ProbeKind.SERVICE:
                return _service(self.host or NAME, self.port, self.authority)

    def problem(self) -> str | None:
        """Ask once; None when the part is ready, else why it is not."""
        ready, remark = self.look()
        return None if ready else remark


def _unless(problem: str | None) -> Look:
    return Look(problem is None, problem or "")


def _tcp(host: str, port: int) -> str | None:
    try:
        socket.create_connection((host, port), timeout=_LIMIT_S).close()
    except OSError as error:
        return f"no connection to {host}:{port}: {error.strerror or error}"
    return None


def _redis(port: int, password_file: str) -> str | None:
    if not password_file:
        return _spoken(port, b"PING\r\n", b"+PONG\r\n")
    try:
        password = Path(password_file).read_bytes()
    except OSError as error:
        return f"{password_file} cannot be read: {error.strerror}"
    return _spoken(port, b"AUTH %b\r\nPING\r\n" % password, b"+OK\r\n+PONG\r\n")


def _spoken(port: int, question: bytes, expected: bytes, authority: str = "") -> str | None:
    """Send a line and compare the beginning of the answer."""
    try:
        with socket.create_connection((HOST, port), timeout=_LIMIT_S) as plain:
            connection = _trusting(authority).wrap_socket(plain, server_hostname=HOST) if authority else plain
            with connection:
                connection.sendall(question)
                with connection.makefile("rb") as received:
                    answer = received.read(len(expected))
    except OSError as error:
        return f"no answer from {HOST}:{port}: {error.strerror or error}"
    return None if answer == expected else f"{HOST}:{port} answers {answer!r}"


def _trusting(authority: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority)


def _service(host: str, port: int, authority: str) -> Look:
    """The page says what is missing for readiness, and what the service does without for a while."""
    connection = http.client.HTTPConnection(host, port, timeout=_LIMIT_S)
    try:
        if authority:
            connection = http.client.HTTPSConnection(host, port, timeout=_LIMIT_S, context=_trusting(authority))
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        body = response.read(_PAGE_BYTES).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        scheme = "https" if authority else "http"
        return Look(False, f"{scheme}://{host}:{port}/readyz: {error}")
    finally:
        connection.close()
    ready = response.status == http.HTTPStatus.OK
    try:
        page = json.loads(body)
        wrong, lesser = _listed(page["not_ready"]), _listed({**page["outage"], **page["degraded"]})
    except (ValueError, KeyError, TypeError, AttributeError):
        return Look(ready, "" if ready else f"/readyz answers {response.status}: {body[:300]}")
    if ready:
        return Look(True, f"ready, but {lesser}" if lesser else "")
    return Look(False, "; ".join(filter(None, (wrong, lesser))))


def _listed(problems: Mapping[str, str]) -> str:
    return "; ".join(f"{name}: {problem}" for name, problem in problems.items())


def _kafka(port: int, conf_file: str) -> str | None:
    # Without this look first, librdkafka would report a broker that has not started yet on standard error.
    if (problem := _tcp(HOST, port)) is not None:
        return problem
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError:
        # `make status` without an environment: that the port is open is all that can be seen.
        return None
    try:
        conf = json.loads(Path(conf_file).read_text()) if conf_file else {}
        client = AdminClient({**conf, "bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
        brokers = client.list_topics(timeout=_LIMIT_S).brokers
    except (OSError, ValueError) as error:
        return f"{conf_file} cannot be used: {error}"
    except KafkaException as error:
        return f"no metadata from {HOST}:{port}: {error}"
    return None if brokers else f"the broker at {HOST}:{port} has not joined yet"
