"""`sluice decision`, what was decided on scaling and retention, and why; `sluice what-if`, what would have been."""

from typing import Annotated, Any

import typer

from sluice_cli.arguments import Limit, Stream
from sluice_cli.command import command, group
from sluice_cli.session import Session

app = group("Decisions on scaling and retention, with their reasons.")

_KINDS = ("scale", "retention")


@command(app, "list")
def list_decisions(
    session: Session,
    stream: Annotated[
        str | None, typer.Argument(metavar="[SCOPE/STREAM]", help="Of all streams unless given.", show_default=False)
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TIME",
            help="All recorded since then; TIME as in --at. Else the last ones of the stream, or a day of all streams.",
        ),
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Recorded before; now unless given.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", metavar="|".join(_KINDS), help="Only those of a kind.")] = None,
    code: Annotated[str | None, typer.Option("--code", metavar="CODE", help="Only those of a case, as split.")] = None,
    acts: Annotated[
        bool | None, typer.Option("--acts/--rests", help="Only those that change the stream, or that do not.")
    ] = None,
    limit: Limit = None,
) -> None:
    """List decisions with their reasons, the latest first."""
    from sluice.lookback.times import moment_of
    from sluice_cli.api import path_of
    from sluice_cli.errors import UsageError
    from sluice_cli.rendering_decisions import DECISION_COLUMNS, decision_row
    from sluice_cli.units import scoped

    if kind not in (None, *_KINDS):
        raise UsageError(f"{kind!r} is no kind of decision", f"use {' or '.join(_KINDS)}")
    chosen: dict[str, Any] = {"kind": kind, "code": code, "acts": acts}
    chosen |= {
        name: moment_of(text, session.now_ms) for name, text in (("from", begin), ("to", end)) if text is not None
    }
    if stream is not None:
        scope, name = scoped(stream)
        path = path_of("scopes", scope, "streams", name, "decisions")
    else:
        path = path_of("decisions")
    if stream is not None and begin is None:
        if any(value is not None for value in chosen.values()):
            raise UsageError("--to, --kind, --code and --acts need --from", "without it the last decisions are listed")
        items = session.rest.get(path)["items"][:limit]
    else:
        items = session.rest.pages(path, limit, **chosen)
    about = stream or "any stream"
    session.items(items, DECISION_COLUMNS, decision_row, empty=f"nothing was decided on {about} in that time")


def what_if(
    session: Session,
    stream: Stream,
    policy: Annotated[
        str,
        typer.Argument(
            metavar="POLICY",
            help="size=100MiB..1GiB, time=1h..2d, or min=2,factor=4,cooldown=5m or a part of that.",
            show_default=False,
        ),
    ],
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="Since when; TIME as in --at, 7 days ago at most.")
    ] = "-24h",
) -> None:
    """Say what another scaling or retention of a stream would have done. Nothing is changed."""
    from sluice.lookback.times import moment_of
    from sluice_cli.api import path_of
    from sluice_cli.rendering_decisions import draw_what_if
    from sluice_cli.units import scoped

    scope, name = scoped(stream)
    body = {**_body(policy), "since": moment_of(since, session.now_ms)}
    found = session.rest.change("POST", path_of("scopes", scope, "streams", name, "what-if"), body).body
    session.show(found, lambda out, f: draw_what_if(out, f, policy))


def _body(text: str) -> dict[str, Any]:
    """Raises UsageError."""
    from sluice.domain.config import RetentionPolicy, RetentionType
    from sluice.policies.policy_parser import UnreadableError, policy_of
    from sluice_cli.errors import UsageError

    try:
        policy = policy_of(text)
    except UnreadableError as error:
        raise UsageError(str(error), "`sluice what-if --help` shows how policies are written") from error
    if isinstance(policy, RetentionPolicy):
        type = "time" if policy.retention_type is RetentionType.TIME else "size"
        return {"retention": {"type": type, "min": policy.minimum, "max": policy.maximum}}
    given = {"minSegments": policy.min_segments, "scaleFactor": policy.scale_factor, "cooldownMs": policy.cooldown_ms}
    return {"scaling": {name: value for name, value in given.items() if value is not None}}
