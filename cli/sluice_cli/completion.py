"""Completion of names: from the API, with a short timeout; whatever fails, there is just nothing to complete."""

from collections.abc import Callable

import typer

from sluice_cli.addresses import Address, usable

TIMEOUT_S = 0.5
MAX_NAMES = 100


def _names(context: typer.Context, path: tuple[str, ...], prefix: str) -> list[str]:
    from sluice_cli.api import Api, path_of

    # Whatever goes wrong here would be written into the line that is being typed.
    try:
        before, after = context.find_root().params.get("api"), context.params.get("api")
        address = usable(Address.API, {"api": after or before or ""})
        with Api(address, connect_s=TIMEOUT_S, read_s=TIMEOUT_S) as api:
            found = [str(item["name"]) for item in api.pages(path_of(*path), MAX_NAMES, prefix=prefix or None)]
    except Exception:  # noqa: BLE001 - see above
        return []
    return [name for name in found if name.startswith(prefix)]


def scopes(ctx: typer.Context, incomplete: str) -> list[str]:
    """The scopes that begin with what is there."""
    return _names(ctx, ("scopes",), incomplete)


def _names_of(kind: str) -> Callable[[typer.Context, str], list[str]]:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        scope, slash, name = incomplete.partition("/")
        if not slash:
            return [f"{found}/" for found in scopes(ctx, scope)]
        return [f"{scope}/{found}" for found in _names(ctx, ("scopes", scope, kind), name)]

    return complete


streams = _names_of("streams")
groups = _names_of("readergroups")
tables = _names_of("tables")
