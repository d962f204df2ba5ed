"""`sluice reader-group`: reader groups."""

from typing import Annotated, Any

import typer

from sluice_cli.arguments import At, Group, Limit, Scope
from sluice_cli.command import command, group
from sluice_cli.confirmation import Yes, confirm, group_losses
from sluice_cli.session import Session

app = group("Reader groups: who reads what, and what is kept for them.")

_RETENTIONS = ("none", "manual", "automatic")
_NEVER = -1
_Streams = Annotated[
    list[str] | None,
    typer.Option("--stream", metavar="SCOPE/STREAM", help="What it reads, from its head; may be repeated."),
]
_Start = Annotated[
    list[str] | None,
    typer.Option(
        "--start", metavar="SCOPE/STREAM:CUT", help="Read it from a cut SEGMENT=OFFSET,… instead; may be repeated."
    ),
]
_End = Annotated[
    list[str] | None, typer.Option("--end", metavar="SCOPE/STREAM:CUT", help="Up to there; may be repeated.")
]
_Retention = Annotated[
    str | None,
    typer.Option("--retention", metavar="|".join(_RETENTIONS), help="Who says how far it is; the rest is kept."),
]
_Refresh = Annotated[str | None, typer.Option("--refresh", metavar="TIME", help="How often readers look for news.")]
_Interval = Annotated[
    str | None,
    typer.Option("--checkpoint-interval", metavar="TIME|never", help="How often it checkpoints by itself."),
]
_Most = Annotated[int | None, typer.Option("--max-checkpoints", min=1, metavar="N", help="How many may be under way.")]


def _path(name: str) -> str:
    from sluice_cli.api import path_of
    from sluice_cli.units import scoped

    scope, own = scoped(name, "group")
    return path_of("scopes", scope, "readergroups", own)


@command(app, "list")
def list_groups(session: Session, scope: Scope, limit: Limit = None) -> None:
    """List the reader groups of a scope."""
    from sluice_cli.api import path_of

    session.items(
        session.rest.pages(path_of("scopes", scope, "readergroups"), limit),
        ("reader group", "state", "streams"),
        lambda g: (g["name"], g["state"], ", ".join(g["streams"])),
        empty=f"scope {scope} has no reader groups",
    )


@command(app, "show")
def show(session: Session, group: Group, at: At = None) -> None:
    """Show a reader group, now or at a time; how far it has read is shown with its streams."""
    from sluice_cli.rendering import draw_group, draw_past_group

    if at is None:
        session.show(session.rest.get(_path(group)), draw_group)
    else:
        from sluice.lookback.replay import group_at
        from sluice.lookback.times import moment_of
        from sluice_cli.units import scoped

        moment = moment_of(at, session.now_ms)
        found = group_at(session.records, *scoped(group, "group"), moment, session.out.progress)
        session.show(found, draw_past_group)


@command(app, "readers")
def readers(session: Session, group: Group) -> None:
    """Show which reader of a group reads which segments, how far, and how much the group has yet to read."""
    from sluice_cli.rendering_readers import draw_readers

    session.show(session.rest.get(f"{_path(group)}/readers"), draw_readers)


@command(app, "create")
def create(
    session: Session,
    group: Group,
    stream: _Streams = None,
    start: _Start = None,
    end: _End = None,
    retention: _Retention = None,
    refresh: _Refresh = None,
    checkpoint_interval: _Interval = None,
    max_checkpoints: _Most = None,
) -> None:
    """Create a reader group."""
    from sluice_cli.errors import RefusedError, UsageError

    streams = _streams(stream, start, end)
    if not streams:
        raise UsageError("a reader group reads at least one stream", "name it with --stream SCOPE/STREAM")
    config = {"streams": streams, **_settings(retention, refresh, checkpoint_interval, max_checkpoints)}
    try:
        session.rest.get(_path(group))
    except RefusedError as error:
        if error.status != 404:
            raise
    else:
        raise RefusedError(f"reader group {group} exists already", "change it with `sluice reader-group update`")
    session.done(f"reader group {group} created", session.rest.change("PUT", _path(group), {"config": config}))


@command(app, "update")
def update(
    session: Session,
    group: Group,
    stream: _Streams = None,
    start: _Start = None,
    end: _End = None,
    retention: _Retention = None,
    refresh: _Refresh = None,
    checkpoint_interval: _Interval = None,
    max_checkpoints: _Most = None,
) -> None:
    """Change what is given of a reader group's configuration; streams, if given, replace all it has read so far."""
    from sluice_cli.errors import UsageError

    changes = _settings(retention, refresh, checkpoint_interval, max_checkpoints)
    streams = _streams(stream, start, end)
    if streams:
        changes["streams"] = streams
    if not changes:
        raise UsageError("nothing to change", "`sluice reader-group update --help` shows what can be changed")
    present = session.rest.read(_path(group))
    body = {"config": {**present.body["config"], **changes}}
    answer = session.rest.change("PUT", _path(group), body, {"If-Match": present.etag})
    session.done(f"reader group {group} updated", answer)


@command(app, "delete")
def delete(session: Session, group: Group, yes: Yes = False) -> None:
    """Delete a reader group; its streams stay; asks first at a terminal."""
    one = _path(group)
    confirm(session, f"Deleting reader group {group}", lambda: group_losses(session, one), yes=yes)
    session.done(f"reader group {group} deleted", session.rest.change("DELETE", one))


def _streams(streams: list[str] | None, starts: list[str] | None, ends: list[str] | None) -> dict[str, Any]:
    """The API's `streams`. Raises UsageError."""
    from sluice_cli.errors import UsageError
    from sluice_cli.units import cut_of, scoped

    found: dict[str, dict[str, Any]] = {}
    for name in streams or ():
        scoped(name)
        found[name] = {}
    for edge, texts in (("start", starts or ()), ("end", ends or ())):
        for text in texts:
            name, colon, cut = text.partition(":")
            if not colon:
                raise UsageError(f"{text!r} has no cut", f"write --{edge} SCOPE/STREAM:SEGMENT=OFFSET")
            scoped(name)
            found.setdefault(name, {})[edge] = cut_of([cut])
    return found


def _settings(retention: str | None, refresh: str | None, interval: str | None, most: int | None) -> dict[str, Any]:
    from sluice.lookback.times import duration_of
    from sluice_cli.errors import UsageError

    settings: dict[str, Any] = {}
    if retention is not None:
        if retention not in _RETENTIONS:
            raise UsageError(f"{retention!r} is no retention of a reader group", f"use {', '.join(_RETENTIONS)}")
        settings["retention"] = retention
    if refresh is not None:
        settings["refreshMs"] = duration_of(refresh)
    if interval is not None:
        settings["checkpointIntervalMs"] = _NEVER if interval == "never" else duration_of(interval)
    if most is not None:
        settings["maxOutstandingCheckpoints"] = most
    return settings
