"""Callers with permissions that a test gives them."""

from sluice.security.caller import Caller, UnauthenticatedError
from sluice.security.resources import Permission

NONE, READ, READ_UPDATE = Permission.NONE, Permission.READ, Permission.READ_UPDATE

ALL = "*"


class Callers:
    """Who sends `Basic NAME` is NAME, if there is one; any other method has no handler.

    Permissions are by resource; those on `ALL` count where it has none of its own. `requests` has the headers.
    """

    def __init__(self, **permissions: dict[str, Permission]) -> None:
        self.permissions = permissions
        self.requests: list[str | None] = []

    async def caller(self, authorization: str | None) -> Caller | None:
        """Part of Authenticator."""
        self.requests.append(authorization)
        method, _, name = (authorization or "").partition(" ")
        if method != "Basic":
            return None
        own = self.permissions.get(name)
        if own is None:
            raise UnauthenticatedError
        return Caller(name, lambda resource: own.get(resource, own.get(ALL, NONE)))


def as_(name: str) -> list[tuple[str, str]]:
    """The metadata of a call by this caller."""
    return [("authorization", f"Basic {name}")]
