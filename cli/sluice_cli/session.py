"""What every command is given: where Sluice is, how to print, and the connections, opened when first used."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sluice_cli.addresses import Address, find, usable
from sluice_cli.output import Output

if TYPE_CHECKING:
    from sluice.domain.host import Host
    from sluice.lookback.source import FollowedSource
    from sluice.pravega.client import SegmentStoreClient
    from sluice.pravega.store import SegmentStore
    from sluice_cli.api import Answer, Api
    from sluice_cli.migration.zookeeper import ZooKeeperNodes
    from sluice_cli.records.backing_up import Topics
    from sluice_client import Client

ANSWER_S = 30.0
"""How long a controller may take to reply."""

STORE_S = 10.0
"""How long a segment store may take to answer a question."""

_NAME = "sluice-cli"
"""Of its clients of Kafka."""

_TRUE, _FALSE = ("true", "1", "yes", "on"), ("", "false", "0", "no", "off")


def open_api(base: str, read_s: float | None = None) -> Api:
    """A connection to an api-gateway, with the credentials of the environment. Raises UsageError for half of them.

    An answer may take `read_s` seconds, or as long as the gateway waits itself.
    """
    from sluice.security.credentials import CA_VARIABLE, credentials_of
    from sluice.security.hiding import shown
    from sluice.security.watched import SecurityConfigError
    from sluice_cli.api import READ_S, Api
    from sluice_cli.errors import UsageError

    def waiting() -> None:
        sys.stderr.write(
            f"Still waiting for {shown(base)}. Ctrl-C ends the waiting, but not the requested operation.\n"
        )
        sys.stderr.flush()

    try:
        credentials = credentials_of()
    except SecurityConfigError as error:
        raise UsageError(str(error), "give both, or neither") from error
    return Api(
        base,
        waiting=waiting,
        read_s=READ_S if read_s is None else read_s,
        credentials=credentials,
        ca=os.environ.get(CA_VARIABLE, ""),
    )


def open_source(bootstrap: str) -> FollowedSource:
    """A reader of Kafka's topics. Raises UnreachableError, UsageError."""
    from sluice.lookback.kafka import KafkaSource
    from sluice_cli.records.clients import client_of, quiet

    return KafkaSource(bootstrap, client_of(bootstrap, _NAME, quiet), _NAME)


def open_topics(bootstrap: str) -> Topics:
    """The topics of a system that is being restored. Raises UsageError."""
    from sluice_cli.records.restored_topics import KafkaTopics

    return KafkaTopics(bootstrap)


def with_archive(source: FollowedSource, target: str) -> FollowedSource:
    """The same topics, as far back as the archive goes. Raises UsageError if pyarrow is not installed."""
    from sluice_cli.errors import UsageError

    try:
        from sluice.lookback.archived import ArchivedSource
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise UsageError("reading the archive needs pyarrow", "install sluice-streams-cli[archive]") from error
    return ArchivedSource(source, target)


def open_client(controller: str) -> AbstractAsyncContextManager[Client]:
    """The client library's client, for events, with the credentials of the environment. Raises UsageError."""
    import sluice_client
    from sluice_cli.errors import UsageError

    try:
        access = sluice_client.Access.of_environment()
        if sluice_client.is_secured(controller):
            # A file that cannot be used shows here, before anything is asked.
            access.to_stores()
    except ValueError as error:
        raise UsageError(str(error), "`sluice --help` and docs/cli.md name the variables") from error
    return sluice_client.open_client(controller, sluice_client.Patience(deadline_s=ANSWER_S), access)


def open_store(route: Callable[[int], Host | None], container_count: int) -> AbstractAsyncContextManager[SegmentStore]:
    """A client of the segment stores; `route` says where a container is.

    The key of tokens and TLS are in the same variables as those of the services. Raises UsageError.
    """
    from sluice.pravega.client import SegmentStoreClient
    from sluice.pravega.tokens import OwnTokens
    from sluice.security.contexts import ClientTls
    from sluice.security.tls import watched_client
    from sluice.security.tokens import NO_EXPIRY, signer_of
    from sluice.security.watched import SecurityConfigError
    from sluice_cli.errors import UsageError

    key, key_file = os.environ.get("SLUICE_TOKEN_KEY", ""), os.environ.get("SLUICE_TOKEN_KEY_FILE", "")
    has_tls, checks_host = _is_set("SLUICE_STORE_TLS", "false"), _is_set("SLUICE_STORE_TLS_CHECK_HOST", "true")
    trusted = ClientTls("SLUICE_STORE_TLS", os.environ.get("SLUICE_STORE_TLS_AUTHORITIES", ""), checks_host)
    try:
        signer = signer_of(key, key_file, NO_EXPIRY, lambda: time.time_ns() // 1_000_000)
        tls = watched_client("segment stores", has_tls, trusted)
    except SecurityConfigError as error:
        raise UsageError(str(error), "give what the services and the segment stores have") from error
    tokens = OwnTokens(signer)
    return _closing(SegmentStoreClient(route, container_count, call_timeout_s=STORE_S, tokens=tokens, tls=tls))


def open_zookeeper(address: str, cluster: str) -> AbstractContextManager[ZooKeeperNodes]:
    """What an original has in ZooKeeper; TLS and user are in the variables of cluster-manager.

    Raises UsageError, UnreachableError.
    """
    from sluice.security.contexts import ClientTls
    from sluice.security.tls import watched_client
    from sluice.security.watched import SecurityConfigError, watched_password
    from sluice.zookeeper_access import ZooKeeperAccess
    from sluice_cli.errors import UsageError
    from sluice_cli.migration.zookeeper import connected

    prefix = "SLUICE_ZOOKEEPER_TLS"
    files = (f"{prefix}_CERTIFICATE", f"{prefix}_KEY", f"{prefix}_AUTHORITIES_PASSWORD_FILE")
    user, password = os.environ.get("SLUICE_ZOOKEEPER_USER", ""), os.environ.get("SLUICE_ZOOKEEPER_PASSWORD_FILE", "")
    if bool(user) != bool(password):
        raise UsageError(
            "SLUICE_ZOOKEEPER_USER and SLUICE_ZOOKEEPER_PASSWORD_FILE go together", "give both, or neither"
        )
    checks_host = _is_set(f"{prefix}_CHECK_HOST", "true")
    authorities = os.environ.get(f"{prefix}_AUTHORITIES", "")
    trusted = ClientTls(prefix, authorities, checks_host, *(os.environ.get(name, "") for name in files))
    try:
        tls = watched_client("ZooKeeper", _is_set(prefix, "false"), trusted)
        watched = watched_password("password of ZooKeeper", password) if user else None
    except SecurityConfigError as error:
        raise UsageError(str(error), "give what cluster-manager is given") from error
    return connected(address, cluster, ZooKeeperAccess(tls, user, watched))


def _is_set(variable: str, default: str) -> bool:
    """A truth value, as the services take it. Raises UsageError."""
    from sluice_cli.errors import UsageError

    word = os.environ.get(variable, default).lower()
    if word not in (*_TRUE, *_FALSE):
        raise UsageError(f"{variable} is {word!r}, which is neither true nor false", "set it to true or false")
    return word in _TRUE


@asynccontextmanager
async def _closing(client: SegmentStoreClient) -> AsyncIterator[SegmentStore]:
    try:
        yield client
    finally:
        await client.close()


@dataclass
class Session:
    """One run of one command. `given` are the addresses of the command line, by the names of their options."""

    given: Mapping[str, str]
    json: bool

    @cached_property
    def api(self) -> str:
        """The URL of an api-gateway. Raises UsageError, as the other addresses do."""
        return usable(Address.API, self.given)

    @cached_property
    def kafka(self) -> str:
        """Kafka's bootstrap servers."""
        return find(Address.KAFKA, self.given).value

    def controller(self, given: str | None) -> str:
        """The controller's address; `given` is that of the command's own option. Raises UsageError."""
        return usable(Address.CONTROLLER, {"controller": given} if given else {})

    @cached_property
    def out(self) -> Output:
        return Output(json=self.json)

    @cached_property
    def rest(self) -> Api:
        return open_api(self.api)

    def rest_within(self, read_s: float) -> Api:
        """A connection of its own whose answers take `read_s` seconds at most; the caller closes it."""
        return open_api(self.api, read_s=read_s)

    @cached_property
    def records(self) -> FollowedSource:
        """What Kafka has, and before that what the archive has, if there is one."""
        archive = find(Address.ARCHIVE, self.given).value
        return with_archive(self.present, archive) if archive else self.present

    @cached_property
    def present(self) -> FollowedSource:
        """What Kafka has: enough for what is so now, which is folded from a snapshot on."""
        return open_source(self.kafka)

    @property
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def show(self, document: Any, draw: Callable[[Output, Any], None]) -> None:
        """Print one document: as JSON, or as `draw` has it for users."""
        if self.json:
            self.out.document(document)
        else:
            draw(self.out, document)

    def items(
        self,
        items: Iterable[Any],
        columns: Sequence[str],
        row: Callable[[Any], Sequence[object]],
        *,
        empty: str,
    ) -> None:
        """Print a list: one JSON array, or a table for users."""
        found = list(items)
        if self.json:
            self.out.document(found)
        else:
            self.out.table(columns, (row(item) for item in found), empty=empty)

    def done(self, sentence: str, answer: Answer) -> None:
        """Say that a change was made: the answer's body with the id of the request, or a sentence."""
        if self.json:
            body = answer.body if isinstance(answer.body, dict) else {}
            self.out.document({"request": answer.request, **body})
        else:
            traced = f"  (request {answer.request})" if answer.request else ""
            self.out.text(f"{sentence}{traced}")

    def said(self, sentence: str, document: Any) -> None:
        """Say what was done on this machine: a document for programs, or a sentence."""
        if self.json:
            self.out.document(document)
        else:
            self.out.text(sentence)

    def remark(self, sentence: str) -> None:
        """Say on stderr what is no part of the answer."""
        sys.stderr.write(f"{sentence}\n")

    def close(self) -> None:
        """Close what was opened."""
        for opened in (self.__dict__.get("rest"), self.__dict__.get("present")):
            if opened is not None:
                opened.__exit__(None, None, None)
