"""`sluice verify`: whether the segment stores have what the journal says."""

from typing import TYPE_CHECKING, Annotated

import typer

from sluice_cli import completion
from sluice_cli.output import Output
from sluice_cli.session import Session

MAP_S = 10.0
"""How long the gateway may take to say where the containers are, before the last answer holds."""

if TYPE_CHECKING:
    from sluice.verification.survey import Report
    from sluice_cli.verification.run import Choice, Summary


def verify(
    session: Session,
    scope: Annotated[
        str | None,
        typer.Option("--scope", metavar="SCOPE", help="Only what is in it.", autocompletion=completion.scopes),
    ] = None,
    stream: Annotated[
        str | None,
        typer.Option(
            "--stream",
            metavar="SCOPE/STREAM",
            help="Only this one and its mark stream.",
            autocompletion=completion.streams,
        ),
    ] = None,
    leftovers: Annotated[
        bool, typer.Option("--leftovers/--no-leftovers", help="Look for segments, too, that should be gone.")
    ] = True,
    repair: Annotated[bool, typer.Option("--repair", help="Carry out what is safe; the reason is printed.")] = False,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, max=1024, metavar="N", help="Questions that are out at a time.")
    ] = 32,
    patience: Annotated[
        str,
        typer.Option("--patience", metavar="TIME", help="How long a container may take to answer before it is silent."),
    ] = "20s",
) -> None:
    """Compare the journal with the segment stores, and report each segment that differs.

    Ends with 0 if nothing differs, 1 if something does, 2 if segment stores did not answer for some segments.
    """
    import asyncio

    from sluice.lookback.times import duration_of
    from sluice_cli.errors import UsageError
    from sluice_cli.units import scoped
    from sluice_cli.verification.run import Choice

    if scope is not None and stream is not None:
        raise UsageError("--scope and --stream exclude each other", "--stream names the scope, too")
    name = None
    if stream is not None:
        scope, name = scoped(stream)
    choice = Choice(scope, name, leftovers, repair, concurrency, duration_of(patience) / 1000)
    code = asyncio.run(_verify(session, choice))
    if code:
        raise typer.Exit(code)


async def _verify(session: Session, choice: "Choice") -> int:
    from sluice_cli.api import path_of
    from sluice_cli.session import open_store
    from sluice_cli.verification.routes import Routes
    from sluice_cli.verification.run import Summary
    from sluice_cli.verification.run import verify as run

    code = 0
    with session.rest_within(MAP_S) as api:
        routes = Routes(lambda: api.get(path_of("containers")))
        async with open_store(routes.host, routes.container_count) as store:
            async for report in run(session.present, store, routes, choice, session.out.progress):
                if session.json:
                    session.out.line(report)
                else:
                    _draw(session.out, report)
                if isinstance(report, Summary):
                    code = report.exit_code
    return code


def _draw(out: Output, report: "Report | Summary") -> None:
    from sluice.verification.survey import Finding, NotAnswered, UnderWay

    if isinstance(report, Finding):
        out.text(f"{report.segment}: {report.problem}")
        out.text(f"  journal: {report.journal}")
        out.text(f"  store:   {report.store}")
        out.text(f"  repair:  {report.repair}")
    elif isinstance(report, NotAnswered):
        out.text(f"{report.segment}: not known: {report.reason}")
    elif isinstance(report, UnderWay):
        out.text(f"{report.of}: {report.workflow} is under way, {report.segments} segments are compared in part")
    else:
        _draw_summary(out, report)


def _draw_summary(out: Output, summary: "Summary") -> None:
    repaired = f", {summary.repaired} repaired" if summary.repaired else ""
    out.text(
        f"{summary.segments} segments: {summary.findings} differ{repaired}, {summary.not_answered} not answered for, "
        f"{summary.under_way} changing"
    )
    if summary.former_forgotten:
        out.text(f"not looked for: what is left of {summary.former_forgotten} deletions before the latest ones")
