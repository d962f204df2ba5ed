"""`sluice security`: the password file, what a user may do by it, and what in it does nothing."""

from pathlib import Path
from typing import Annotated

import typer

from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Security: users, passwords, and what they may do. These commands work on files, and call no one.")

_File = Annotated[Path, typer.Argument(metavar="FILE", help="A password file of Pravega's form.", show_default=False)]
_User = Annotated[str, typer.Argument(metavar="USER", show_default=False)]
_FORMS = "prn::/, prn::/scope:S, or that with /stream:N, /reader-group:N or /key-value-table:N"


@command(app, "users")
def users(session: Session, file: _File) -> None:
    """List the users of a password file, with what they may do; of two lines for one the last counts."""
    from sluice.security.accounts import account_lines, lines_of
    from sluice_cli import password_file

    found = {line.user: line for line in account_lines(lines_of(password_file.load(file)))}
    session.items(
        ({"user": one.user, "line": one.number, "acl": one.acl} for one in found.values()),
        ("user", ">line", "acl"),
        lambda one: (one["user"], one["line"], one["acl"]),
        empty="there is no user",
    )


@command(app, "may")
def may(
    session: Session,
    file: _File,
    user: _User,
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help=_FORMS, show_default=False)],
) -> None:
    """Say what a user may do on a resource, and which entry of the ACL decides."""
    from sluice.security.accounts import read_accounts
    from sluice.security.watched import SecurityConfigError
    from sluice_cli import password_file
    from sluice_cli.errors import RefusedError, UsageError

    if not resource.startswith("prn::/"):
        raise UsageError(f"{resource!r} is no resource", f"write it as {_FORMS}")
    try:
        account = read_accounts(password_file.load(file)).get(user)
    except SecurityConfigError as error:
        raise RefusedError(f"{file}: {error}") from error
    if account is None:
        raise RefusedError(f"{file} has no user {user!r}", f"`sluice security users {file}` shows those it has")
    decision = account.acl.decide(resource)
    entry = decision.entry
    if entry is None:
        reason = f"no entry of line {account.line} matches"
    elif decision.evaluated:
        reason = f"entry {entry.number} of line {account.line}, {entry.text!r}, is the first that matches"
    else:
        reason = f"entry {entry.number} of line {account.line}, {entry.text!r}, is not evaluated and ends the list"
    document = {
        "user": user,
        "resource": resource,
        "permission": decision.permission.name,
        "line": account.line,
        "entry": None if entry is None else {"number": entry.number, "text": entry.text},
        "reason": reason,
    }
    session.said(f"{decision.permission.name}: {reason}", document)


@command(app, "hash")
def hash(session: Session) -> None:
    """Print the hash of a password that is typed, or the first line of stdin, as a password file has it."""
    from sluice.security.passwords import hash_password
    from sluice_cli.password_file import typed_password

    stored = hash_password(typed_password())
    session.said(stored, {"hash": stored})


@command(app, "set")
def set_user(
    session: Session,
    file: _File,
    user: _User,
    acl: Annotated[
        list[str] | None,
        typer.Option("--acl", metavar="ENTRIES", help="PATTERN,PERMISSION;…; may be repeated, the first match counts."),
    ] = None,
    keep_password: Annotated[
        bool, typer.Option("--keep-password", help="Ask for no password: that of the user stays.")
    ] = False,
) -> None:
    """Write a user with a password into a password file, which is made if it is not there.

    The password is typed, or the first line of stdin. An ACL that is not given stays.
    """
    from sluice.security.accounts import read_accounts, with_account
    from sluice.security.lint import lint_acl
    from sluice.security.passwords import hash_password
    from sluice.security.watched import SecurityConfigError
    from sluice_cli import password_file
    from sluice_cli.errors import UsageError

    entries = None if acl is None else ";".join(one.strip().rstrip(";") for one in acl)
    for entry, problem in lint_acl(entries or ""):
        raise UsageError(f"entry {entry}: {problem}", "nothing was written")
    content = password_file.load(file) if file.exists() else b""
    try:
        known = read_accounts(content).get(user)
    except SecurityConfigError:
        known = None
    if entries is None:
        entries = known.acl_text if known is not None else ""
    if not keep_password:
        hint = "; --keep-password leaves the one that the user has" if known is not None else ""
        stored = hash_password(password_file.typed_password(hint))
    elif known is not None:
        stored = known.stored_hash
    else:
        raise UsageError(f"{file} has no user {user!r} whose password could stay", "nothing was written")
    try:
        changed = with_account(content, user, stored, entries)
    except ValueError as error:
        raise UsageError(str(error), "nothing was written") from error
    password_file.save(file, changed)
    session.said(f"user {user} is in {file}", {"file": str(file), "user": user, "acl": entries})


@command(app, "check")
def check(session: Session, file: _File) -> None:
    """List what in a password file does nothing, or something else than it seems to; exit code 1 if there is any."""
    from sluice.security.lint import lint_accounts
    from sluice_cli import password_file

    found = lint_accounts(password_file.load(file))
    session.items(
        ({"line": one.line, "user": one.user, "entry": one.entry, "problem": one.problem} for one in found),
        (">line", "user", "entry", "problem"),
        lambda one: (one["line"], one["user"], one["entry"], one["problem"]),
        empty="there is nothing to warn of",
    )
    if found:
        raise typer.Exit(1)
