"""`sluice config`: what becomes of the settings of a Pravega controller."""

import os
from pathlib import Path
from typing import Annotated

import typer

from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Settings: those of a Pravega controller, and what they are here. These commands call no one.")

_File = Annotated[
    Path | None,
    typer.Argument(metavar="FILE", help="Left out: SLUICE_PRAVEGA_CONFIG.", show_default=False),
]
_Options = Annotated[
    str | None,
    typer.Option(
        "--java-options",
        metavar="TEXT",
        help="Java's arguments, with system properties as in -Dname=value. Left out: SLUICE_PRAVEGA_OPTIONS.",
        show_default=False,
    ),
]
_PREFIX = "SLUICE_"


@command(app, "explain")
def explain(session: Session, file: _File = None, java_options: _Options = None) -> None:
    """Say of each setting of a Pravega controller what becomes of it here; ends with 1 if a service would not start."""
    from sluice.pravega_config.properties import PravegaConfigError
    from sluice.pravega_config.translation import Fate, Translation
    from sluice_cli.errors import RefusedError, UsageError

    given = str(file or os.environ.get("SLUICE_PRAVEGA_CONFIG", ""))
    options = java_options if java_options is not None else os.environ.get("SLUICE_PRAVEGA_OPTIONS", "")
    if not given and not options:
        raise UsageError("there are no settings of Pravega", "name its file, such as controller.config.properties")
    ours = {name.removeprefix(_PREFIX).lower() for name in os.environ if name.startswith(_PREFIX)}
    try:
        rows = Translation.of(given, options, os.environ, ours).rows
    except PravegaConfigError as error:
        raise RefusedError(str(error)) from error
    session.items(
        (
            {"property": row.property, "fate": row.fate, "setting": row.setting, "value": row.value, "why": row.what}
            for row in rows
        ),
        ("property", "what becomes of it", "setting", "value", "remark"),
        lambda row: (row["property"], row["fate"], row["setting"], row["value"], row["why"]),
        empty="there are no settings of Pravega's controller in it",
    )
    refused = sum(row.fate is Fate.REFUSED for row in rows)
    if refused:
        raise RefusedError(f"{refused} of them cannot be kept: services do not start with them")
