"""`sluice diagnose`: what a bug report needs, in one archive."""

from typing import Annotated

import typer

from sluice_cli.session import Session


def diagnose(
    session: Session,
    output: Annotated[
        str | None, typer.Option("--output", metavar="FILE", help="Else sluice-diagnose-TIME.tar.gz in this folder.")
    ] = None,
    home: Annotated[
        str,
        typer.Option(
            "--home", envvar="SLUICE_HOME", metavar="FOLDER", help="The state folder of a system on this machine."
        ),
    ] = ".sluice",
) -> None:
    """Write one archive for a bug report: versions, settings, readiness, what is under way, logs; without secrets.

    What cannot be had is named, with the reason, and the rest is written all the same.
    """
    from datetime import UTC, datetime
    from pathlib import Path

    from sluice_cli.diagnosis import archive

    folder = f"sluice-diagnose-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    file = Path(output) if output is not None else Path(f"{folder}.tar.gz")
    found = archive.collect(session, Path(home))
    archive.write(found, file, folder)
    lines = [f"{file} has {', '.join(sorted(found.files))}"]
    lines += [f"without {name}: {reason}" for name, reason in sorted(found.problems.items())]
    lines.append("secrets were taken out by their names and places; look it through before you send it")
    session.said("\n".join(lines), {"file": str(file), "files": sorted(found.files), "problems": found.problems})
