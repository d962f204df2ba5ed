"""The state that a group begins with: where its readers start, and what they must not read before something else.

Java's client begins with the segments of the cuts alone. A cut may have a hole: of two segments that were merged, one
is in it, the other was read to its end before. What follows both then waits for ever for the second. So what comes
after such a hole is in the state from the start, waiting for those only that will still be read; Java's readers take
it as it is. Rules: reader-groups 6.2 and 10.
"""

from sluice.domain.segment import parse_segment_name
from sluice.pravega.reader_group_config import GroupConfig
from sluice.pravega.reader_group_state import GroupState, Predecessors
from sluice.pravega.stream_cut import Offsets
from sluice_client.controller import ControllerApi
from sluice_client.head import what_follows

_WHOLE = 2**63 - 1
"""The offset at which a segment ends that is to be read to its end."""


async def first_state(controller: ControllerApi, config: GroupConfig) -> GroupState:
    """The state of a group that nobody has read yet. Raises StreamMissing, and what calls of a controller do."""
    starts: Offsets = {}
    ends: Offsets = {}
    future: Predecessors = {}
    for name, start in config.starts.items():
        scope, _, stream = name.partition("/")
        positions = start.offsets if start is not None else await controller.head(scope, stream)
        end = config.ends.get(name)
        until = {segment: _WHOLE if at < 0 else at for segment, at in end.offsets.items()} if end is not None else {}
        starts |= positions
        ends |= until
        future |= await _behind_holes(controller, positions, until)
    return GroupState(config, starts, ends, future=future, last_read=starts)


async def _behind_holes(controller: ControllerApi, positions: Offsets, until: Offsets) -> Predecessors:
    """Segments that follow what will not be read, with the ids of what they still have to wait for."""
    replaced = await what_follows(controller, positions, until)
    ahead = {*positions, *replaced}
    return {
        segment: {parse_segment_name(name)[2] for name in before if name in ahead}
        for segment, before in replaced.items()
        if segment not in positions and not ahead.issuperset(before)
    }
