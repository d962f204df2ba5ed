"""What is wrong with a value that pydantic refused, in words: the value's name, what it is, and what is allowed.

The one place that knows pydantic's kinds of problems, for settings and for requests alike. Pure.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sluice.security.hiding import shown

_MAX_SHOWN = 60

_ALLOWED = {
    "greater_than_equal": "it must be at least {ge}",
    "greater_than": "it must be more than {gt}",
    "less_than_equal": "it must be at most {le}",
    "less_than": "it must be less than {lt}",
    "multiple_of": "it must be a multiple of {multiple_of}",
    "int_type": "it must be a whole number",
    "int_parsing": "it must be a whole number",
    "int_parsing_size": "it must be a whole number of fewer digits",
    "int_from_float": "it must be a whole number",
    "float_type": "it must be a number",
    "float_parsing": "it must be a number",
    "finite_number": "it must be a finite number",
    "bool_type": "it must be true or false",
    "bool_parsing": "it must be true or false",
    "string_type": "it must be text",
    "string_unicode": "it must be text in UTF-8",
    "string_too_short": "it must have at least {min_length} characters",
    "string_too_long": "it must have at most {max_length} characters",
    "literal_error": "it must be {expected}",
    "enum": "it must be {expected}",
    "list_type": "it must be a list",
    "tuple_type": "it must be a list",
    "dict_type": "it must be an object",
    "model_type": "it must be an object",
    "model_attributes_type": "it must be an object",
    "dataclass_type": "it must be an object",
    "too_short": "it must have at least {min_length} items",
    "too_long": "it must have at most {max_length} items",
    "path_type": "it must be a path",
    "uuid_type": "it must be a UUID",
    "uuid_parsing": "it must be a UUID",
    "json_type": "it must be JSON",
    "json_invalid": "it must be JSON: {error}",
    "value_error": "{error}",
    "assertion_error": "{error}",
}
_FORMS: dict[str, str] = {}
_WITHOUT_VALUE = {"missing": "is missing", "extra_forbidden": "is not known here"}


def form(pattern: str, words: str) -> str:
    """The pattern, for a field; a text that does not match it is refused with "it must be" and these words."""
    _FORMS[pattern] = words
    return pattern


def sentence(problem: Mapping[str, Any], name: str) -> str:
    """One of pydantic's `errors()` (`type`, `msg`, `input`, `ctx`) as a sentence about `name`."""
    kind = str(problem["type"])
    if kind in _WITHOUT_VALUE:
        return f"{name} {_WITHOUT_VALUE[kind]}"
    context = problem.get("ctx") or {}
    words = _FORMS.get(context.get("pattern", ""))
    allowed = f"it must be {words}" if words else _ALLOWED.get(kind)
    message = str(problem["msg"])
    rule = allowed.format_map(context) if allowed else f"{message[:1].lower()}{message[1:]}"
    return f"{name}{_shown(problem.get('input'))}: {rule}"


def sentences(problems: Iterable[Mapping[str, Any]]) -> list[str]:
    """A sentence for each problem, named after its place: `body.scaling.minSegments`."""
    return [sentence(one, ".".join(str(part) for part in one["loc"])) for one in problems]


def _shown(value: object) -> str:
    """` is 'x'`; nothing for what is not one value, or is too long to be read."""
    if isinstance(value, str) and "://" in value:
        value = shown(value)
    if isinstance(value, str | int | float | bool) and len(text := repr(value)) <= _MAX_SHOWN:
        return f" is {text}"
    return ""
