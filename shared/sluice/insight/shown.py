"""What is shown of a resource: one definition for REST and its OpenAPI document, the look at the past and commands.

A class that derives from `Shown` is a dataclass by that, its fields given by name. pydantic documents and writes it as
it does its own models; `document` writes the same where there is no pydantic. In JSON a name is in camelCase, and what
is None is left out.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import Any, ClassVar, dataclass_transform


def text(description: str = "", *, default: Any = MISSING, examples: list[Any] | None = None) -> Any:
    """A field, as the OpenAPI document has it."""
    said = {"description": description, "examples": examples}
    return field(default=default, metadata={name: value for name, value in said.items() if value})


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(map(str.capitalize, more))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(text,))
class Shown:
    """What is shown, or a part of it."""

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"alias_generator": _camel}

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


class RecordOffset(Shown):
    """Where a record of the journal stands."""

    partition: int
    offset: int


class Moment(Shown):
    """What a description also has if it is one of the past."""

    at: int | None = text("The moment that is described, epoch ms.", default=None)
    as_of: RecordOffset | None = text("The last record of the journal that is taken in.", default=None)


class Allowed(Shown):
    """An action, and whether it is worth to be offered."""

    action: str = text(examples=["seal"])
    allowed: bool
    why: str | None = text("Why it is not, in words.", default=None)


def cut_shown(cut: Mapping[int, int]) -> dict[str, int]:
    """A stream cut, with segment ids as text."""
    return {str(segment): offset for segment, offset in sorted(cut.items())}


def document(shown: Shown) -> dict[str, Any]:
    """As JSON has it."""
    kind: type = type(shown)
    values = ((key, getattr(shown, name)) for name, key in _names(kind))
    return {key: _value(value) for key, value in values if value is not None}


def _value(value: Any) -> Any:
    match value:
        case Shown():
            return document(value)
        case list():
            return [_value(one) for one in value]
        case dict():
            return {key: _value(one) for key, one in value.items()}
        case _:
            return value


@cache
def _names(kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple((one.name, _camel(one.name)) for one in fields(kind))
