"""`sluice security init`: what a secured system begins with, in files."""

from pathlib import Path
from typing import Annotated

import typer

from sluice_cli.errors import CommandError
from sluice_cli.session import Session


def init(
    session: Session,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", show_default=False, help="Where the files go.")],
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST", help="A host name or address that is published; may be repeated."),
    ] = None,
    scope: Annotated[str, typer.Option("--scope", help="What the users writer and reader may use.")] = "demo",
    replace: Annotated[bool, typer.Option("--replace", help="Make all files anew that are there already.")] = False,
) -> None:
    """Make certificates of an authority of one's own, a signing key, and users with passwords."""
    from sluice.security.folder import AUTO_SCALER, USERS, File
    from sluice.security.folder import init as make
    from sluice.security.watched import SecurityConfigError

    try:
        make(folder, names or (), scope, replace=replace)
    except SecurityConfigError as error:
        raise CommandError(str(error), "" if replace else "--replace makes them anew") from error
    if session.json:
        session.out.document({"folder": str(folder), "users": [*USERS, AUTO_SCALER]})
        return
    session.out.text(f"{folder} has all that a secured system begins with; every file is for its owner alone")
    session.out.fields(
        [
            ("authority", f"{File.AUTHORITY}, its key {File.AUTHORITY_KEY}, {File.TRUST_STORE} for Java"),
            ("certificate", f"{File.CERTIFICATE}, its key {File.KEY}, {File.KEY_STORE} for Java"),
            ("signing key", f"{File.TOKEN_KEY}, for gateways, services and segment stores"),
            ("users", f"{File.ACCOUNTS}, and the passwords: {', '.join(f'{user}.password' for user in USERS)}"),
            ("segment stores", f"{File.SEGMENT_STORE}: signing key and credentials, as arguments of Java"),
            ("Kafka", f"{File.KAFKA_CLIENT} for clients, {File.KAFKA_BROKER} for the broker"),
            ("Redis", f"{File.REDIS_PASSWORD}, {File.REDIS}"),
        ]
    )
