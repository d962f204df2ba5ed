"""Writes docs/permissions.md, the permissions that operations need: `python -m api_gateway.permissions_page docs`."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from api_gateway.edge.security.rest_permissions import OPEN_PATHS, PRAVEGA, SLUICE
from api_gateway.edge.security.rules import Rule
from api_gateway.pravega.permissions import RPCS

NAME = "permissions.md"

_HEAD = """\
# What each operation needs

Made from the code by `make docs`. With authentication on, the gateway compares the highest permission that a caller has
on a resource with what the operation needs. It does so before it looks at anything else: a caller who may not read a
stream cannot find out whether it exists. Who calls without credentials gets UNAUTHENTICATED or 401, who may not do
something PERMISSION_DENIED or 403; wrong credentials get UNAUTHENTICATED or 401 even where no permission is needed, but
for what is open over HTTP.

| resource | string |
|---|---|
| root: all scopes | `prn::/` |
| scope; also the collections in it | `prn::/scope:<scope>` |
| stream | `prn::/scope:<scope>/stream:<stream>` |
| reader group | `prn::/scope:<scope>/reader-group:<group>` |
| table | `prn::/scope:<scope>/key-value-table:<table>` |
| what belongs to no scope | `prn::/sluice:cluster`, `prn::/sluice:workflows`, `prn::/sluice:dead-letters` |

`prn::*` and `prn::/.*` in an ACL are also about what belongs to no scope; `prn::/` and `prn::/scope:*` are not.

"Mapped": the stream `_RG<group>` of a reader group's state is the reader group, `_MARK<stream>` is the stream. The flag
is `SLUICE_AUTH_READER_GROUPS_WITH_READ`: who may READ may also write the state of its reader groups. Of a listing with
entries a caller sees those that it may READ.
"""


def page() -> str:
    """The whole page."""
    open_paths = ", ".join(f"`{path}`" for path in OPEN_PATHS)
    return "\n".join(
        [
            _HEAD,
            "## RPCs\n",
            *_table("RPC", RPCS),
            "\ngRPC's own health and reflection services are open.\n",
            "## Pravega's REST interface\n",
            *_table("call", PRAVEGA),
            "\nThe health of components is shown without details where authentication is on.\n",
            "## Sluice's REST interface\n",
            *_table("call", SLUICE),
            f"\nOpen is what is outside both interfaces: {open_paths}.\n",
        ]
    )


def _table(of: str, rules: Mapping[str, Rule | None]) -> Iterable[str]:
    yield f"| {of} | resource | needs | entries |"
    yield "|---|---|---|---|"
    for name, rule in rules.items():
        yield f"| `{name}` | {' | '.join(_cells(rule))} |"


def _cells(rule: Rule | None) -> tuple[str, str, str]:
    if rule is None:
        return "", "open", ""
    if not rule.on:
        return "", "READ on what it is about" if rule.entries else "no permission", rule.entries
    resources = (" or " if rule.any_will_do else " and ").join(one.text for one in rule.on)
    return resources, rule.level.text, rule.entries


def main() -> None:
    """Write it into the folder that is named."""
    (Path(sys.argv[1]) / NAME).write_text(page())


if __name__ == "__main__":
    main()
