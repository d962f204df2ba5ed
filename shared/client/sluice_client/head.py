"""Where reading a stream begins: at its head, which a retention policy or a user may have moved, or at a cut."""

import msgspec

from sluice_client.controller import ControllerApi


class Start(msgspec.Struct, frozen=True):
    """The segments where it begins with their offsets in bytes, and for those that follow which they wait for."""

    segments: dict[str, int]
    waiting: dict[str, frozenset[str]]


async def find_start(controller: ControllerApi, scope: str, stream: str) -> Start:
    """The head, and what has followed it up to now. Raises ClientError."""
    return await start_at(controller, await controller.head(scope, stream))


async def start_at(controller: ControllerApi, positions: dict[str, int]) -> Start:
    """Segments with the offsets where reading them begins, and what has followed them up to now.

    A segment waits only for those that will be read: of two that were merged into one, the beginning may lie behind the
    first and before the end of the second. Segments that come later wait for all that they replace. Raises ClientError.
    """
    ahead, unseen = dict.fromkeys(positions), list(positions)
    replaced: dict[str, list[str]] = {}
    while unseen:
        successors = await controller.successors(unseen.pop())
        replaced |= successors
        unseen += successors.keys() - ahead.keys()
        ahead |= dict.fromkeys(successors)
    waiting = {segment: frozenset(before).intersection(ahead) for segment, before in replaced.items()}
    return Start(positions, {segment: before for segment, before in waiting.items() if segment not in positions})
