"""Where reading a stream begins: at its head, which a retention policy or a user may have moved, or at a cut."""

from collections.abc import Collection

import msgspec

from sluice_client.controller import ControllerApi


class Start(msgspec.Struct, frozen=True):
    """The segments where it begins with their offsets in bytes, and for those that follow which they wait for."""

    segments: dict[str, int]
    waiting: dict[str, set[str]]


async def find_start(controller: ControllerApi, scope: str, stream: str) -> Start:
    """The head, and what has followed it up to now. Raises ClientError."""
    return await start_at(controller, await controller.head(scope, stream))


async def start_at(controller: ControllerApi, positions: dict[str, int]) -> Start:
    """Segments with the offsets where reading them begins, and what has followed them up to now.

    A segment waits only for those that will be read: of two that were merged into one, the beginning may lie behind the
    first and before the end of the second. Segments that come later wait for all that they replace. Raises ClientError.
    """
    replaced = await what_follows(controller, positions)
    ahead = {*positions, *replaced}
    waiting = {segment: ahead.intersection(before) for segment, before in replaced.items() if segment not in positions}
    return Start(positions, waiting)


async def what_follows(
    controller: ControllerApi, positions: Collection[str], until: Collection[str] = ()
) -> dict[str, list[str]]:
    """What has followed some segments up to now, each with all that it follows; nothing that follows those in `until`.

    Raises ClientError.
    """
    seen, unseen = set(positions), list(positions)
    replaced: dict[str, list[str]] = {}
    while unseen:
        segment = unseen.pop()
        if segment not in until:
            successors = await controller.successors(segment)
            replaced |= successors
            unseen += successors.keys() - seen
            seen |= successors.keys()
    return replaced
