"""The seed of what is given none: the same where changes are judged, another each time by hand; `SIM_CHANCE` gives it.

All chance of a simulation comes from its broker's random numbers, and time from its event loop. The order of a set of
strings is of the interpreter alone: what services do must not depend on it.
"""

import os
import random

from support.effort import JUDGED

_GIVEN = os.environ.get("SIM_CHANCE")
SEED = int(_GIVEN) if _GIVEN else 0 if JUDGED else random.SystemRandom().getrandbits(32)
