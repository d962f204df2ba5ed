"""The rights of Kafka's users for the documentation: as a table, and as a list for `kafka-acls.sh`."""

from collections.abc import Iterator
from itertools import groupby

from sluice.kafka.access import Kind, Right, rights, user_of


def table() -> str:
    """One row for each operation of a user, with all that it is for."""
    head = ["| user | may | on | for it |", "|---|---|---|---|"]
    return "\n".join([*head, *(row for name, granted in rights().items() for row in _rows(name, granted))])


def _rows(name: str, granted: tuple[Right, ...]) -> Iterator[str]:
    for (operation, kind, why), same in groupby(granted, key=lambda r: (r.operation, r.kind, r.why)):
        names = [f"`{right.name}{'*' if right.is_prefix else ''}`" for right in same]
        plural = "s" if len(names) > 1 or names[0].endswith("*`") else ""
        yield f"| `{user_of(name)}` | {operation.value} | {kind.value}{plural} {', '.join(names)} | {why} |"


def acls() -> str:
    """Lines of shell: one for what may be said in one call."""
    lines = [line for name, granted in rights().items() for line in _lines(name, granted)]
    return "```sh\n" + "\n".join(lines) + "\n```"


def _lines(name: str, granted: tuple[Right, ...]) -> Iterator[str]:
    ordered = sorted(granted, key=lambda r: (r.operation, r.is_prefix))
    for (operation, is_prefix), same in groupby(ordered, key=lambda r: (r.operation, r.is_prefix)):
        pattern = " --resource-pattern-type prefixed" if is_prefix else ""
        on = " ".join(f"{'--topic' if right.kind is Kind.TOPIC else '--group'} {right.name}" for right in same)
        yield f"acls --add --allow-principal User:{user_of(name)} --operation {operation.value}{pattern} {on}"
