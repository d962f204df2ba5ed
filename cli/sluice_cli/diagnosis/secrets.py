"""Taking secrets out of text before it leaves the machine.

A secret is found by the name beside it (`sasl.password`, `SLUICE_..._TOKEN`), by its place in a URL (`user:password@`),
or because it is the value of a setting of such a name: then it is taken out wherever it stands. One under a name that
says nothing is not recognized; better a harmless value too many is hidden than a secret shown. Pure.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from sluice.security.hiding import HIDDEN, USER_IN_URL, WORDS

SHORTEST = 4
"""A secret of fewer characters is taken out where it has a name, but not wherever its characters stand."""

_NAMED = re.compile(rf"(?:{WORDS})|[-_.](?:key|pass|pem|auth)(?:$|[-_.])", re.IGNORECASE)
_NO_SECRETS = frozenset({"true", "false", "none", "null"})
_VALUE = r"""
    "(?:[^"\\]|\\.)*"            # a string of JSON
    | \\+".*?\\+"                # one inside another
    | '[^']*'
    | (?:bearer|basic)\s+\S+
    | [^\s,;&}"']+
"""
_WITH_NAME = re.compile(rf"""([\w.-]*(?:{WORDS})[\w.-]*\\*["']?\s*[=:]\s*)({_VALUE})""", re.IGNORECASE | re.VERBOSE)


def is_secret(name: str) -> bool:
    """Whether the value of a setting or of a property with this name is to be hidden."""
    return bool(_NAMED.search(name))


def secrets_in(settings: Mapping[str, str]) -> Iterator[str]:
    """The values that are secrets: of settings, of properties of JSON or text in them, and in URLs."""
    for name, value in settings.items():
        if is_secret(name):
            yield value
        for found in USER_IN_URL.findall(value):
            user, _, password = found.removesuffix("@").partition(":")
            yield from (password or user, unquote(password or user))
        yield from _in_document(_parsed(value))
        yield from (found[2].strip("\\\"'") for found in _WITH_NAME.finditer(value))


class Redactor:
    """Hides the given secrets, and what looks like one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        # The longest first: one may be the beginning of another.
        found = sorted(
            {one for one in secrets if len(one) >= SHORTEST and one.lower() not in _NO_SECRETS}, key=len, reverse=True
        )
        escaped = [form for one in found for form in dict.fromkeys((one, json.dumps(one)[1:-1]))]
        self._known = re.compile("|".join(map(re.escape, escaped))) if escaped else None

    def text(self, text: str) -> str:
        """The text without secrets."""
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        return _WITH_NAME.sub(rf"\1{HIDDEN}", USER_IN_URL.sub(f"{HIDDEN}@", text))

    def document(self, document: Any) -> Any:
        """A JSON document without secrets; what has the name of one is hidden as a whole."""
        if isinstance(document, Mapping):
            return {
                name: HIDDEN if is_secret(name) and value else self.document(value) for name, value in document.items()
            }
        if isinstance(document, list | tuple):
            return [self.document(one) for one in document]
        return self.text(document) if isinstance(document, str) else document


def _in_document(document: Any) -> Iterator[str]:
    if isinstance(document, Mapping):
        for name, value in document.items():
            if is_secret(str(name)) and isinstance(value, str):
                yield value
            yield from _in_document(value)
    elif isinstance(document, list):
        for one in document:
            yield from _in_document(one)


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return None
