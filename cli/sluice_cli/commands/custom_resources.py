"""`sluice custom-resources`: the operator of deploy/k8s/components/custom-resources."""

from typing import Annotated

import typer

from sluice_cli.session import Session, open_api


def custom_resources(
    session: Session,
    namespace: Annotated[str, typer.Option("--namespace", metavar="NAME", help="Whose resources.")],
    health: Annotated[
        str | None, typer.Option("--health", metavar="HOST:PORT", help="Where to serve /livez.", show_default=False)
    ] = None,
) -> None:
    """Keep scopes and streams as the custom resources of a Kubernetes namespace say, until a signal comes."""
    from sluice_cli.errors import UsageError

    try:
        from sluice_cli.custom_resources.operator import run
    except ModuleNotFoundError as error:
        if error.name != "kopf":
            raise
        raise UsageError("this needs kopf", "install sluice-streams-cli[custom-resources]") from error
    address = session.api
    run(lambda: open_api(address), namespace, health)
