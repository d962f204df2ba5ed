"""Where reading a stream begins: at its head, which a retention policy or a user may have moved."""

import msgspec

from sluice_client import ControllerApi


class Start(msgspec.Struct, frozen=True):
    """The segments at the head with their offsets in bytes, and for those that follow which they wait for."""

    segments: dict[str, int]
    waiting: dict[str, frozenset[str]]


async def find_start(controller: ControllerApi, scope: str, stream: str) -> Start:
    """The head, and what has followed it up to now.

    A segment waits only for those that will be read: of two that were merged into one, the head may lie behind the
    first and before the end of the second. Segments that come later wait for all that they replace. Raises ClientError.
    """
    head = await controller.head(scope, stream)
    ahead, unseen = dict.fromkeys(head), list(head)
    replaced: dict[str, list[str]] = {}
    while unseen:
        successors = await controller.successors(unseen.pop())
        replaced |= successors
        unseen += successors.keys() - ahead.keys()
        ahead |= dict.fromkeys(successors)
    waiting = {segment: frozenset(before).intersection(ahead) for segment, before in replaced.items()}
    return Start(head, {segment: before for segment, before in waiting.items() if segment not in head})
