"""How operators write another policy: `size=100MiB..1GiB`, `time=1h..2d`, `min=2,factor=4,cooldown=5m`. Pure."""

import re

from sluice.domain.config import RetentionPolicy, RetentionType
from sluice.policies.replay import OtherScaling, Policy

_BYTES = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_TIMES = {"MS": 1, "S": 1000, "M": 60_000, "H": 3_600_000, "D": 86_400_000}
_UNBOUNDED = 2**63 - 1
_SCALING = {"min": "min_segments", "factor": "scale_factor", "cooldown": "cooldown_ms"}
NO_TARGET = (
    "what another target rate would have done cannot be computed: segment stores report that a segment is hot or cold "
    "by the target it had, never its rate, and nothing at all of a load between half of that target and the target"
)


class UnreadableError(Exception):
    """The text is no policy."""


def policy_of(text: str) -> Policy:
    """Raises UnreadableError."""
    return retention_of(text) if text.startswith(("size", "time")) else scaling_of(text)


def retention_of(text: str) -> RetentionPolicy:
    """`size=MIN..MAX` or `time=MIN..MAX`; without a maximum there is none. Raises UnreadableError."""
    kind, _, bounds = text.partition("=")
    units = {"size": _BYTES, "time": _TIMES}.get(kind)
    if units is None:
        raise UnreadableError(f"{text!r}: a retention is size=100MiB..1GiB or time=1h..2d")
    least, dots, most = bounds.partition("..")
    type = RetentionType.SIZE if kind == "size" else RetentionType.TIME
    policy = RetentionPolicy(type, _amount(least, units), _amount(most, units) if dots else _UNBOUNDED)
    if policy.maximum < policy.minimum:
        raise UnreadableError(f"{text!r} would keep at least {least} and at most {most}; write the smaller first")
    return policy


def scaling_of(text: str) -> OtherScaling:
    """`min=N`, `factor=N` and `cooldown=TIME`, or some of them, with commas between. Raises UnreadableError.

    The target rate is none of them: the number of splits that a hot segment was reported with bounds its rate from
    below, but that reports would have come, or not come, by another target cannot be known from those that did.
    """
    values = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name == "target":
            raise UnreadableError(f"{part!r}: {NO_TARGET}")
        if name not in _SCALING:
            raise UnreadableError(f"{part!r}: a scaling is min=2,factor=4,cooldown=5m or a part of that")
        values[_SCALING[name]] = _amount(value, _TIMES if name == "cooldown" else {"": 1})
    return OtherScaling(**values)


def _amount(text: str, units: dict[str, int]) -> int:
    found = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text.strip())
    unit = units.get(found[2].upper()) if found else None
    if found is None or unit is None:
        known = ", ".join(name.lower() for name in units if name)
        raise UnreadableError(f"{text!r} is no amount" + (f"; units are {known}" if known else ""))
    return int(found[1]) * unit
