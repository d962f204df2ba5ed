"""Credentials of the method Basic: a user and a password, verified against Pravega's password file (security 2).

A password costs 20 ms of a core to verify, so that is done by threads, once for equal credentials, and remembered.
What is remembered is bound to the stored hash: a changed password or a removed user counts with the next call. How
many are verified at a time is bounded, for each user, too, because every caller who reaches the port can have it done.

Concurrency: belongs to the event loop; derivations run in threads of their own.
"""

import asyncio
import os
import secrets
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from api_gateway.edge.errors import OverloadedError
from api_gateway.edge.security.remembered import Remembered
from sluice.security.accounts import Account
from sluice.security.caller import Caller, UnauthenticatedError
from sluice.security.passwords import MalformedHashError, hash_password, verify
from sluice.security.watched import Watched

MAX_REMEMBERED = 10_000
REMEMBERED_S = 300.0
MAX_UNDER_WAY = 64
"""Derivations that run or wait for a thread; with two threads they take less than a second."""
MAX_OF_A_USER = 8
"""Different passwords of one user at a time, whether there is such a user or not."""
_MAX_THREADS = 2


class BasicHandler:
    """Proves callers by a password file."""

    name = "Basic"

    def __init__(
        self,
        accounts: Watched[Mapping[str, Account]],
        clock: Callable[[], float] = time.monotonic,
        verified: Callable[[str, str], bool] = verify,
    ) -> None:
        self._accounts = accounts
        self._verify = verified
        self._remembered = Remembered[bool](MAX_REMEMBERED, REMEMBERED_S, clock)
        self._under_way: dict[bytes, asyncio.Future[bool]] = {}
        self._of_users: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1), thread_name_prefix="password")
        # A user that is not there takes as long as a wrong password: nobody learns which users there are.
        self._hash_of_none = hash_password(secrets.token_hex())

    async def caller(self, token: str) -> Caller:
        """See Handler."""
        user, password = credentials_in(token)
        account = self._accounts.current.get(user)
        stored = self._hash_of_none if account is None else account.stored_hash
        digest = self._remembered.digest(user, stored, password)
        if self._remembered.get(digest) is None:
            right = await self._derived(digest, user, password, stored)
            if not right:
                raise UnauthenticatedError
        if account is None:
            raise UnauthenticatedError
        # From its last use on: who guesses at that moment does not keep a known user out.
        self._remembered.put(digest, True)
        return Caller(user, account.acl.permission_on)

    def close(self) -> None:
        """End the threads when they are done."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _derived(self, digest: bytes, user: str, password: str, stored: str) -> bool:
        """Whether the password is right. Raises OverloadedError."""
        derivation = self._under_way.get(digest)
        if derivation is None:
            if len(self._under_way) >= MAX_UNDER_WAY or self._of_users[user] >= MAX_OF_A_USER:
                raise OverloadedError("too many passwords are being verified: try again")
            loop = asyncio.get_running_loop()
            derivation = loop.run_in_executor(self._threads, self._is_right, password, stored)
            self._under_way[digest] = derivation
            self._of_users[user] += 1
            derivation.add_done_callback(lambda _: self._end(digest, user))
        # Others may wait for it, too.
        return await asyncio.shield(derivation)

    def _is_right(self, password: str, stored: str) -> bool:
        try:
            return self._verify(password, stored)
        except MalformedHashError:
            # That was warned of when the file was read.
            return False

    def _end(self, digest: bytes, user: str) -> None:
        del self._under_way[digest]
        self._of_users[user] -= 1
        if not self._of_users[user]:
            del self._of_users[user]


def credentials_in(token: str) -> tuple[str, str]:
    """User and password. Raises UnauthenticatedError for what is not Base64 of `user:password` in UTF-8."""
    try:
        user, colon, password = b64decode(token, validate=True).decode().partition(":")
    except ValueError:
        raise UnauthenticatedError from None
    if not colon:
        raise UnauthenticatedError
    return user, password
