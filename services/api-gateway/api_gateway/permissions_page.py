"""Writes docs/permissions.md, the permissions that operations need: `python -m api_gateway.permissions_page docs`."""

import sys
import textwrap
from collections.abc import Iterable, Mapping
from pathlib import Path

import api_gateway.pravega.rest.permissions as pravega
from api_gateway.app import OPEN_PATHS
from api_gateway.console import rest as console
from api_gateway.edge.security.rules import Rule
from api_gateway.pravega.permissions import RPCS

NAME = "permissions.md"
_WIDTH = 120
_TIED = "\u00a0"
"""A space at which no line ends."""

_HEAD = """\
# What each operation needs

For operators who write ACLs: the permission that each call needs. Made from the code by `make docs`. The gateway
compares the highest permission that a caller has on a resource with what the operation needs, before anything else.
Who calls without credentials gets UNAUTHENTICATED or 401, who may not do something PERMISSION_DENIED or 403; wrong
credentials get UNAUTHENTICATED or 401 in any case, but for what is open over HTTP.

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
is `SLUICE_AUTH_READER_GROUPS_WITH_READ`: who may READ may also write the state of its reader groups. Of a listing a
caller sees the entries of the named kind that it may READ.
"""


def page() -> str:
    """The whole page."""
    open_paths = ", ".join(f"`{path}`" for path in OPEN_PATHS)
    return "\n".join(
        [
            _HEAD,
            "## RPCs\n",
            *_items(RPCS),
            "\ngRPC's own health and reflection services are open.\n",
            "## Pravega's REST interface\n",
            *_items(pravega.RULES),
            "\nThe health of components is shown without details where authentication is on.\n",
            "## Sluice's REST interface\n",
            *_items(console.RULES),
            "\n" + textwrap.fill(f"Open is what is outside both interfaces: {open_paths}.", _WIDTH) + "\n",
        ]
    )


def _items(rules: Mapping[str, Rule | None]) -> Iterable[str]:
    """An item for each permission, with all operations that need it."""
    alike: dict[str, list[str]] = {}
    for name, rule in rules.items():
        alike.setdefault(_needed(rule), []).append(f"`{name}`".replace(" ", _TIED))
    for needed, names in alike.items():
        item = f"- **{needed}**: {', '.join(names)}"
        yield textwrap.fill(item, _WIDTH, subsequent_indent="  ", break_on_hyphens=False).replace(_TIED, " ")


def _needed(rule: Rule | None) -> str:
    if rule is None:
        return "open"
    entries = f" (entries: {rule.entries})" if rule.entries else ""
    if not rule.on:
        return f"READ on what it is about{entries}" if rule.entries else "no permission"
    resources = (" or " if rule.any_will_do else " and ").join(one.text for one in rule.on)
    return f"{resources}: {rule.level.text}{entries}"


def main() -> None:
    """Write it into the folder that is named."""
    (Path(sys.argv[1]) / NAME).write_text(page())


if __name__ == "__main__":
    main()
