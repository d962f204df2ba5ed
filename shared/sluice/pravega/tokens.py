"""The delegation tokens that go with commands to segment stores which verify them (security 4.4 and 4.7).

Each command is given its token when it is made; "" is none.
"""

from typing import Protocol

from sluice.security.tokens import NO_SIGNER, TokenSigner


class Tokens(Protocol):
    """What has the right token for a command on a segment."""

    async def for_request(self, segment: str) -> str:
        """The token of a command that a reply ends."""

    async def for_append(self, segment: str) -> str:
        """The token of a writer's set-up.

        If it expires, the store closes the connection at that moment, with all that is under way on it.
        """


class OwnTokens:
    """Those of a service or tool that has the signing key: a new one for each command (`sluice.security.tokens`)."""

    def __init__(self, signer: TokenSigner) -> None:
        self._signer = signer

    async def for_request(self, _segment: str) -> str:
        return self._signer.master()

    async def for_append(self, segment: str) -> str:
        return self._signer.appending_to(segment)


NO_TOKENS: Tokens = OwnTokens(NO_SIGNER)
"""For segment stores that do not verify."""
