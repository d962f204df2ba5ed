"""Where the command line is wired. Heavy modules are imported by the command that needs them, when it runs."""

from typing import Annotated

import typer

from sluice_cli.command import Api, Json, Kafka, command
from sluice_cli.commands import (
    audit,
    backup,
    cluster,
    config,
    context,
    custom_resources,
    cut_over,
    dead_letter,
    decision,
    demonstration,
    diagnose,
    entry,
    event,
    go_back,
    journal,
    migrate,
    overview,
    reader_group,
    request,
    scaling,
    scope,
    search,
    security,
    security_files,
    snapshot,
    stream,
    table,
    take_over,
    topic,
    trace,
    transaction,
    verify,
    workflow,
)
from sluice_cli.plugins import ExtensibleGroup

app = typer.Typer(
    name="sluice",
    cls=ExtensibleGroup,
    no_args_is_help=True,
    help="Command Sluice, and look into it.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(version("sluice-streams-cli"))
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version and end.")
    ] = False,
    # The command reads these from the context, where completion finds them, too.
    api: Api = None,
    kafka: Kafka = None,
    json: Json = False,
) -> None:
    """Command Sluice, and look into it."""


app.add_typer(scope.app, name="scope")
stream.app.add_typer(scaling.app)
stream.app.add_typer(event.app)
stream.app.add_typer(journal.streams)
app.add_typer(stream.app, name="stream")
app.add_typer(reader_group.app, name="reader-group")
table.app.add_typer(entry.app)
app.add_typer(table.app, name="table")
app.add_typer(transaction.app, name="transaction")
app.add_typer(workflow.app, name="workflow")
app.add_typer(decision.app, name="decision")
app.add_typer(request.app, name="request")
app.add_typer(cluster.containers, name="container")
app.add_typer(cluster.members, name="member")
app.add_typer(overview.partitions, name="partition")
app.add_typer(config.app, name="config")
app.add_typer(context.app, name="context")
app.add_typer(dead_letter.app, name="dead-letter")
app.add_typer(demonstration.app, name="demonstration")
app.add_typer(journal.app, name="journal")
app.add_typer(topic.app, name="topic")
app.add_typer(snapshot.app, name="snapshot")
app.add_typer(backup.app, name="backup")
command(migrate.app, "cut-over")(cut_over.cut_over)
migrate.app.add_typer(take_over.app)
migrate.app.add_typer(go_back.app)
app.add_typer(migrate.app, name="migrate")
command(security.app, "init")(security_files.init)
app.add_typer(security.app, name="security")
command(app, "overview")(overview.overview)
command(app, "about")(overview.about)
command(app, "follow")(overview.follow)
command(app, "diagnose")(diagnose.diagnose)
command(app, "trace")(trace.trace)
command(app, "search")(search.search)
command(app, "verify")(verify.verify)
command(app, "audit")(audit.audit)
command(app, "what-if")(decision.what_if)
command(app, "custom-resources")(custom_resources.custom_resources)


def main() -> None:
    """Run the command line."""
    app()
