"""Access control lists as Pravega reads them: the first entry whose pattern matches a resource decides (security 2.4).

In Pravega a pattern is a regular expression of Java in which every `*` has become `.*`. Names come from callers, so a
pattern that could take long is not evaluated: a pattern may have characters, `.`, `*`, classes (`[a-c]`), escaped
punctuation (`\\.`) and alternatives (`(a|b)`), and is matched in time linear in the name. Whatever else is a pattern
ends its list: what no entry before it decided is refused, as in Pravega, where such an entry makes the call fail.
"""

import itertools
import re
from collections.abc import Iterable

import msgspec

from sluice.security.resources import Permission

MAX_RESOURCE_CHARS = 4096
"""No legal name is a fifth as long; nobody may do anything on a longer one."""

_MAX_ALTERNATIVES = 64
_TRIMMED = "".join(map(chr, range(33)))
"""What Java's `trim` takes away."""

_ANY = r"[^\n\r\x85\u2028\u2029]"
_ATOM = r"\*|\.|\\[-./:_#]|\[\^?[\w./:#-]+\]|[^][\\(){}+?|^$*.]"
_ATOMS = re.compile(_ATOM, re.ASCII)
_ONLY_ATOMS = re.compile(f"(?:{_ATOM})*", re.ASCII)
_GROUP = re.compile(r"\(([^()]*)\)")
_NO_GROUP = re.compile(r"\\[()|\\]|\[[^]]*[()|[]")
"""Signs of alternatives that are escaped, or in a class."""

Atoms = tuple[str, ...]
"""A pattern taken apart: each matches one character, but for `*`."""


class BadPatternError(Exception):
    """The pattern is not evaluated."""


class BadEntryError(Exception):
    """The entry is ignored; the text says why."""


class Entry(msgspec.Struct, frozen=True):
    """One entry of a list; `number` counts from 1, ignored entries included."""

    number: int
    text: str
    pattern: str
    permission: Permission


class Decision(msgspec.Struct, frozen=True):
    """What a list says of a resource; no entry: none matches."""

    permission: Permission
    entry: Entry | None = None
    evaluated: bool = True
    """False: the entry's pattern is not evaluated, so nothing is granted from there on."""


def alternatives(pattern: str) -> list[Atoms]:
    """The forms that a pattern may have, one at least. Raises BadPatternError."""
    if _NO_GROUP.search(pattern):
        raise BadPatternError
    found = _without_groups(pattern)
    if not all(_ONLY_ATOMS.fullmatch(one) for one in found):
        raise BadPatternError
    return [tuple(_ATOMS.findall(one)) for one in found]


def _without_groups(pattern: str) -> list[str]:
    """Each way to choose among alternatives. Raises BadPatternError if there are too many."""
    found, done = [pattern], list[str]()
    while found:
        one = found.pop()
        group = _GROUP.search(one)
        if group is None:
            done += one.split("|")
        else:
            found += [one[: group.start()] + option + one[group.end() :] for option in group[1].split("|")]
        if len(found) + len(done) > _MAX_ALTERNATIVES:
            raise BadPatternError
    return done


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A regular expression that takes linear time for a resource. Raises BadPatternError."""
    try:
        return re.compile("|".join(_expression(atoms) for atoms in alternatives(pattern)))
    except re.error:
        raise BadPatternError from None


def _expression(atoms: Atoms) -> str:
    """What stands between two stars is matched where it comes first, and never elsewhere: that loses no match."""
    runs = ["".join(map(_single, run)) for star, run in itertools.groupby(atoms, "*".__eq__) if not star]
    if "*" not in atoms:
        return "".join(runs)
    first = "" if atoms[0] == "*" else runs.pop(0)
    last = "" if atoms[-1] == "*" else runs.pop()
    return first + "".join(f"(?>{_ANY}*?{run})" for run in runs) + f"{_ANY}*" + last


def _single(atom: str) -> str:
    if atom == ".":
        return _ANY
    return atom if atom[0] in "[\\" else re.escape(atom)


def split_entries(text: str) -> list[str]:
    """The entries of a list, each as it is written; what stands between two semicolons may be nothing."""
    entries = text.split(";")
    # A final semicolon is usual and ends the last entry.
    return entries[:-1] if not entries[-1].strip(_TRIMMED) else entries


def parse_entry(number: int, text: str) -> Entry:
    """One entry. Raises BadEntryError for one that Pravega ignores."""
    # Java's `split` drops what is empty at the end.
    parts = [part.strip(_TRIMMED) for part in text.rstrip(",").split(",")]
    if len(parts) != 2 or not all(parts):
        raise BadEntryError("it is not a pattern and a permission with one comma between them")
    pattern, word = parts
    if word not in Permission.__members__:
        raise BadEntryError(f"{word!r} is no permission: NONE, READ or READ_UPDATE")
    return Entry(number, f"{pattern},{word}", pattern, Permission[word])


def entries_of(text: str) -> list[Entry]:
    """The entries of a list as it is written: `pattern,PERMISSION;…`. Those that Pravega ignores are left out."""
    found = []
    for number, one in enumerate(split_entries(text), 1):
        try:
            found.append(parse_entry(number, one))
        except BadEntryError:
            continue
    return found


class Acl:
    """One list of entries."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries: list[tuple[Entry, re.Pattern[str] | None]] = []
        for entry in entries:
            # Pravega looks at no other entry for a resource, all of which begin so.
            if not entry.pattern.startswith("prn"):
                continue
            try:
                self._entries.append((entry, compile_pattern(entry.pattern)))
            except BadPatternError:
                self._entries.append((entry, None))
                break

    def permission_on(self, resource: str) -> Permission:
        """The permission of the first entry that matches, NONE if none does."""
        return self.decide(resource).permission

    def decide(self, resource: str) -> Decision:
        """The same, with the entry that decides."""
        if len(resource) > MAX_RESOURCE_CHARS:
            return Decision(Permission.NONE)
        for entry, matching in self._entries:
            if matching is None:
                return Decision(Permission.NONE, entry, evaluated=False)
            if matching.fullmatch(resource):
                return Decision(entry.permission, entry)
        return Decision(Permission.NONE)
