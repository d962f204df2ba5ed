"""The rights of Kafka's users for the documentation, as a list for `kafka-acls.sh`."""

import textwrap
from collections.abc import Iterator
from itertools import groupby

from sluice.kafka.access import Kind, Right, rights, user_of

_WIDTH = 118
"""With a space and a backslash at the end of a line that goes on, 120."""
_TIED = "\u00a0"
"""A space at which no line ends."""


def acls() -> str:
    """Lines of shell: one command for what may be said in one call, behind a comment on what it is for."""
    alike: dict[tuple[Right, ...], list[str]] = {}
    for name, granted in rights().items():
        alike.setdefault(granted, []).append(name)
    lines = [line for granted, names in alike.items() for line in _lines(names, granted)]
    return "```sh\n" + "\n".join(lines) + "\n```"


def _lines(names: list[str], granted: tuple[Right, ...]) -> Iterator[str]:
    users = " ".join(f"--allow-principal{_TIED}User:{user_of(name)}" for name in names)
    ordered = sorted(granted, key=lambda r: (r.operation, r.is_prefix))
    for (operation, is_prefix), same in groupby(ordered, key=lambda r: (r.operation, r.is_prefix)):
        given = tuple(same)
        yield textwrap.fill("; ".join(dict.fromkeys(right.why for right in given)), _WIDTH, initial_indent="# ")
        pattern = " --resource-pattern-type prefixed" if is_prefix else ""
        on = " ".join(f"{'--topic' if right.kind is Kind.TOPIC else '--group'}{_TIED}{right.name}" for right in given)
        command = f"acls --add {users} --operation {operation.value}{pattern} {on}"
        yield " \\\n".join(
            textwrap.wrap(command, _WIDTH, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False)
        ).replace(_TIED, " ")
