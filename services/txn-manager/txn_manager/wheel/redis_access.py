"""How the timer wheel reaches its Redis: the URL without its secrets, and what new connections take from watched files.

`rediss://` is TLS, with the options of redis-py that concern it: `ssl_ca_certs`, `ssl_check_hostname`, `ssl_certfile`
and `ssl_keyfile`. The user's password stands in the URL or in a file of its own. With `sentinel=NAME` the URL names
Sentinels, without TLS or a password of theirs, and each new connection goes to what they say is that master.
"""

import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlencode, urlsplit

from redis.asyncio import BlockingConnectionPool, Redis, SSLConnection
from redis.asyncio.connection import parse_url
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel, SentinelConnectionPool
from redis.backoff import NoBackoff
from redis.credentials import CredentialProvider

from sluice.security.contexts import ClientTls
from sluice.security.tls import tls_in_words, watched_client
from sluice.security.watched import SecurityConfigError, Watched, watched_password

SETTING = "SLUICE_REDIS_URL"
# redis-py has no types for these.
_Sentinel: Any = Sentinel
_SentinelPool: Any = SentinelConnectionPool

_MASTER = "sentinel"
_SENTINEL_PORT = 26379
_FALSE = {"false", "f", "no", "n", "0"}


_CONNECTIONS = 8
_CONNECT_TIMEOUT_S = 2.0


@dataclass(frozen=True)
class RedisAccess:
    """What clients are made of; `watched` are the files that `options` follow."""

    url: str = field(repr=False)
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    watched: tuple[Watched[Any] | None, ...] = ()

    def client(self, address: tuple[str, int] | None = None) -> Redis:
        """Of the server that the URL names, or of another one with all else as the URL says.

        It attempts a call once and has no deadline of its own but for connecting: with a socket timeout it sends inside
        `wait_for`, which in Python 3.11 can swallow a cancellation.
        """
        said: dict[str, Any] = {
            "max_connections": _CONNECTIONS,
            "timeout": _CONNECT_TIMEOUT_S,
            "socket_timeout": None,
            "socket_connect_timeout": _CONNECT_TIMEOUT_S,
            "retry": Retry(NoBackoff(), 0),
            "protocol": 2,
            "decode_responses": True,
        }
        said |= self.options | dict(parse_url(self.url))
        if address is not None:
            host, said["port"] = address
            said["host"] = host or said["host"]
        if master := said.pop(_MASTER, ""):
            server = said.pop("host", "localhost"), said.pop("port", _SENTINEL_PORT)
            connecting = ("socket_timeout", "socket_connect_timeout", "retry", "protocol")
            sentinels = _Sentinel([server], sentinel_kwargs={name: said[name] for name in connecting})
            # It never blocks: a partition has one call under way at a time.
            del said["timeout"], said["max_connections"]
            return Redis.from_pool(_SentinelPool(master, sentinels, **said))
        return Redis.from_pool(BlockingConnectionPool(**said))


class TlsConnection(SSLConnection):
    """Takes the newest context whenever it connects."""

    def __init__(self, *, tls: Watched[ssl.SSLContext], **options: Any) -> None:
        super().__init__(**options)
        self._tls = tls

    async def connect(self) -> None:
        """See SSLConnection."""
        self.ssl_context.context = self._tls.current
        await super().connect()  # type: ignore[no-untyped-call]


class PasswordFile(CredentialProvider):
    """The user with the newest password, whenever a connection is made."""

    def __init__(self, user: str, password: Watched[str]) -> None:
        self._user = user
        self._password = password

    def get_credentials(self) -> tuple[str] | tuple[str, str]:
        """See CredentialProvider."""
        return (self._user, self._password.current) if self._user else (self._password.current,)

    async def get_credentials_async(self) -> tuple[str] | tuple[str, str]:
        """See CredentialProvider."""
        return self.get_credentials()


def redis_in_words(url: str) -> str:
    """How the connection is secured, for operators."""
    parts = urlsplit(url)
    check_host = dict(parse_qsl(parts.query)).get("ssl_check_hostname", "")
    return tls_in_words(parts.scheme == "rediss", _checks_host(check_host))


def redis_access(url: str, password_file: str) -> RedisAccess:
    """What the settings say. Raises SecurityConfigError."""
    try:
        parse_url(url)
        parts = urlsplit(url)
    except ValueError:
        # What it says may be a part of the password.
        raise SecurityConfigError(f"{SETTING} is not redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]") from None
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if _MASTER in query and parts.scheme != "redis":
        raise SecurityConfigError(
            f"{SETTING}: {_MASTER} cannot be given with {parts.scheme}://, name the master instead"
        )
    tls = _tls(parts.scheme == "rediss", query)
    options: dict[str, Any] = {}
    if tls is not None:
        options |= {"connection_class": TlsConnection, "tls": tls}
        parts = parts._replace(scheme="redis", query=urlencode(query))
    password = _password(parts, password_file)
    if password is not None:
        options["credential_provider"] = PasswordFile(unquote(parts.username or ""), password)
        parts = parts._replace(netloc=parts.netloc.rpartition("@")[2])
    return RedisAccess(parts.geturl(), options, (tls, password))


def _tls(is_on: bool, query: dict[str, str]) -> Watched[ssl.SSLContext] | None:
    """Takes what concerns TLS out of the query."""
    tls = ClientTls(
        SETTING,
        query.pop("ssl_ca_certs", ""),
        _checks_host(query.pop("ssl_check_hostname", "")),
        query.pop("ssl_certfile", ""),
        query.pop("ssl_keyfile", ""),
    )
    if others := sorted(name for name in query if name.startswith("ssl_")):
        raise SecurityConfigError(f"{SETTING}: {', '.join(others)} cannot be given")
    return watched_client("Redis", is_on, tls)


def _checks_host(option: str) -> bool:
    return option.lower() not in _FALSE


def _password(parts: SplitResult, file: str) -> Watched[str] | None:
    if not file:
        return None
    if parts.password is not None:
        raise SecurityConfigError(f"{SETTING} has a password, and so has SLUICE_REDIS_PASSWORD_FILE")
    return watched_password("password of Redis", file)
