"""How many calls one user, and all users on one scope, may make at this gateway: a rate, and how many at once.

A rate is a bucket of tokens that fills steadily; what it is kept as is one number, the time at which it will be full.
Only those used lately are kept, and as many as `MAX_BUCKETS`: one that is forgotten is full. Belongs to the event
loop.
"""

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager

from api_gateway.edge.errors import QuotaExceededError
from api_gateway.settings import GatewaySettings

MAX_BUCKETS = 10_000
_NAME = 256
"""No name of a scope is longer; what is, may share its bucket with others."""


class Buckets:
    """A bucket for each name: `per_s` on average, and what that is in `burst_s` at once, at least one."""

    def __init__(self, per_s: float, burst_s: float, monotonic_s: Callable[[], float]) -> None:
        self._token_s = 1 / per_s
        self._slack_s = max(0.0, burst_s - self._token_s)
        self._monotonic_s = monotonic_s
        self._full_at: dict[str, float] = {}

    @property
    def names(self) -> Collection[str]:
        """Those that are kept, the one used longest ago first."""
        return self._full_at.keys()

    def take(self, name: str) -> bool:
        """Whether there was a token."""
        now, name = self._monotonic_s(), name[:_NAME]
        full_at = max(now, self._full_at.pop(name, now))
        has_one = full_at - now <= self._slack_s
        # The one used last stands last.
        self._full_at[name] = full_at + self._token_s if has_one else full_at
        if len(self._full_at) > MAX_BUCKETS:
            del self._full_at[next(iter(self._full_at))]
        return has_one


class Quotas:
    """Those of the settings. Who is not known, because nobody is asked, has no quota as a user."""

    def __init__(self, settings: GatewaySettings, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._per_user_s, self._per_scope_s = settings.quota_per_user_s, settings.quota_per_scope_s
        self._most_calls = settings.max_calls_per_user
        burst_s = settings.quota_burst_s
        self._users = Buckets(self._per_user_s, burst_s, monotonic_s) if self._per_user_s else None
        self._scopes = Buckets(self._per_scope_s, burst_s, monotonic_s) if self._per_scope_s else None
        self._calls: Counter[str] = Counter()

    @property
    def of_scopes(self) -> bool:
        """Whether it matters which scope a call is about."""
        return self._scopes is not None

    def take_of_user(self, principal: str) -> None:
        """Count a call of a user, one that it may not make, too; "" is no user. Raises QuotaExceededError."""
        if self._users is not None and principal and not self._users.take(principal):
            raise QuotaExceededError(f"a user may make {self._per_user_s:g} calls a second (SLUICE_QUOTA_PER_USER_S)")

    def take_on_scope(self, scope: str) -> None:
        """Count a call on a scope, of a caller who may make it; "" is no scope. Raises QuotaExceededError."""
        if self._scopes is not None and scope and not self._scopes.take(scope):
            raise QuotaExceededError(
                f"there may be {self._per_scope_s:g} calls a second on a scope (SLUICE_QUOTA_PER_SCOPE_S)"
            )

    @contextmanager
    def calling(self, principal: str) -> Iterator[None]:
        """A call of the user is in progress inside. Raises QuotaExceededError."""
        if not principal:
            yield
            return
        if self._calls[principal] >= self._most_calls:
            raise QuotaExceededError(
                f"a user may have {self._most_calls} calls in progress (SLUICE_MAX_CALLS_PER_USER)"
            )
        self._calls[principal] += 1
        try:
            yield
        finally:
            self._calls[principal] -= 1
            if not self._calls[principal]:
                del self._calls[principal]
