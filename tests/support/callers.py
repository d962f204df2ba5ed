"""Calls as somebody makes them: what the boundaries of gRPC and HTTP set."""

from collections.abc import Iterator
from contextlib import contextmanager

from sluice.security.caller import CALLER, Caller
from sluice.security.resources import Permission


@contextmanager
def called_by(principal: str, permission: Permission = Permission.READ_UPDATE) -> Iterator[None]:
    """Inside, `principal` calls, who has that permission on everything."""
    token = CALLER.set(Caller(principal, lambda _resource: permission))
    try:
        yield
    finally:
        CALLER.reset(token)
