"""`sluice context`: addresses of systems under names."""

from typing import Annotated

import typer

from sluice_cli.arguments import Controller
from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Contexts: the addresses of a system under a name, so that none need be typed.")

_Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False)]
_Archive = Annotated[
    str | None,
    typer.Option("--archive", metavar="PATH|URL", help="Where the archive is, if there is one.", show_default=False),
]
_COLUMNS = ("in use", "context", "api", "kafka", "controller", "archive")


@command(app, "list")
def list_contexts(session: Session) -> None:
    """List the contexts, and which one is in use."""
    from sluice_cli import contexts

    kept = contexts.load()
    session.items(
        ({"name": name, "current": name == kept.current, **kept.contexts[name]} for name in sorted(kept.contexts)),
        _COLUMNS,
        lambda c: ("*" if c["current"] else "", c["name"], *(c.get(column) for column in _COLUMNS[2:])),
        empty="there is no context",
    )


@command(app, "set")
def set_context(session: Session, name: _Name, controller: Controller = None, archive: _Archive = None) -> None:
    """Keep the addresses that are given under a name; of a context that is there the others stay as they are."""
    from sluice_cli import contexts
    from sluice_cli.addresses import Address, Found, check
    from sluice_cli.errors import UsageError

    given = {which: contexts.checked(which, value) for which, value in session.given.items()}
    if controller is not None:
        given["controller"] = contexts.checked("controller", controller)
    if archive is not None:
        given["archive"] = contexts.checked("archive", archive)
    if not given:
        raise UsageError("no address is given", "give one or more of --api, --kafka, --controller and --archive")
    for which, value in given.items():
        check(Address(which), Found(value, f"--{which}"))
    kept = contexts.load()
    kept.contexts[name] = {**kept.contexts.get(name, {}), **given}
    contexts.save(kept)
    session.said(f"context {name} is kept in {contexts.path()}", {"name": name, **kept.contexts[name]})


@command(app, "use")
def use(session: Session, name: _Name) -> None:
    """Take the addresses of a context from now on, wherever neither an option nor the environment names one."""
    from sluice_cli import contexts

    kept = contexts.load()
    found = kept.one(name)
    kept.current = name
    contexts.save(kept)
    session.said(f"context {name} is in use from now on", {"name": name, **found})


@command(app, "show")
def show(session: Session, controller: Controller = None) -> None:
    """Show the addresses that a command would use now, and where each is from."""
    from sluice.security.hiding import shown
    from sluice_cli import addresses, contexts

    given = session.given if controller is None else {**session.given, "controller": controller}
    found = {which.value: addresses.find(which, given) for which in addresses.Address}
    found = {name: one._replace(value=shown(one.value)) for name, one in found.items()}
    document = {"context": contexts.load().current, "addresses": {name: one._asdict() for name, one in found.items()}}
    session.show(
        document,
        lambda out, _: out.table(
            ("what", "address", "from"), ((name, *one) for name, one in found.items()), empty="there is no address"
        ),
    )


@command(app, "delete")
def delete(session: Session, name: _Name) -> None:
    """Forget a context; nothing else changes."""
    from sluice_cli import contexts

    kept = contexts.load()
    found = kept.one(name)
    del kept.contexts[name]
    if kept.current == name:
        kept.current = ""
    contexts.save(kept)
    session.said(f"context {name} is forgotten", {"name": name, **found})
