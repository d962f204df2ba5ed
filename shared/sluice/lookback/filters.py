"""What questions about the past may be narrowed by: what no record can have is refused. Pure."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import get_args

from sluice.domain.cluster.state import CLUSTER
from sluice.domain.commands import Command
from sluice.domain.events import Event
from sluice.domain.policy.retention import RetentionCode
from sluice.domain.policy.scaling import ScaleCode
from sluice.lookback.decoding import OTHER_TYPES
from sluice.lookback.errors import InvalidTextError

AGGREGATE_KINDS = ("commits", "fences", "group", "prepared", "scope", "stream", "table", "txn")


def _by_lower(names: Iterable[str]) -> Mapping[str, str]:
    return {name.lower(): name for name in names}


_EVENTS = _by_lower(kind.__name__ for kind in get_args(Event))
_TYPES = {**_EVENTS, **_by_lower(kind.__name__ for kind in get_args(Command)), **_by_lower(OTHER_TYPES)}
_CODES = _by_lower(code.value for code in (*ScaleCode, *RetentionCode))


def event_types(texts: Iterable[str]) -> tuple[str, ...]:
    """Types of events, in several texts or one with commas, whatever their case. Raises InvalidTextError."""
    return tuple(_known(text, _EVENTS, "type of event") for text in _listed(texts))


def record_types(texts: Iterable[str]) -> tuple[str, ...]:
    """The same of all that stands in topics: commands, events, reports. Raises InvalidTextError."""
    return tuple(_known(text, _TYPES, "type of command, event or report") for text in _listed(texts))


def decision_code(text: str) -> str:
    """The case of a decision on scaling or retention. Raises InvalidTextError."""
    return _known(text, _CODES, "case of a decision")


def journal_key(text: str) -> str:
    """An aggregate, a scope, or a name in one. Raises InvalidTextError for an aggregate of a kind that there is not."""
    kind, colon, _ = text.partition(":")
    if colon and kind not in AGGREGATE_KINDS:
        kinds = ", ".join(f"{each}:" for each in AGGREGATE_KINDS)
        raise InvalidTextError(f"{text!r} is no aggregate", f"one begins with {kinds} or is {CLUSTER}")
    return text


def _listed(texts: Iterable[str]) -> list[str]:
    return [part.strip() for text in texts for part in text.split(",") if part.strip()]


def _known(text: str, names: Mapping[str, str], what: str) -> str:
    found = names.get(text.lower())
    if found is None:
        near = [names[each] for each in get_close_matches(text.lower(), names, n=3)]
        raise InvalidTextError(f"{text!r} is no {what}", f"near to it: {', '.join(near)}" if near else "")
    return found
