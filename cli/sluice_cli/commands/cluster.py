"""`sluice container` and `sluice member`: who runs what."""

from sluice_cli.command import command, group
from sluice_cli.session import Session

containers = group("Segment containers: which segment store runs which.")
members = group("Members: the instances of Sluice's own services.")


@command(containers, "list")
def list_containers(session: Session) -> None:
    """List the containers with the segment stores that run them."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import draw_containers

    session.show(session.rest.get(path_of("containers")), draw_containers)


@command(members, "list")
def list_members(session: Session) -> None:
    """List the instances with their endpoints and their last heartbeat."""
    from sluice_cli.api import path_of
    from sluice_cli.rendering import MEMBER_COLUMNS, member_row

    now = session.now_ms
    session.items(
        session.rest.pages(path_of("members")),
        MEMBER_COLUMNS,
        lambda m: member_row(m, now),
        empty="no instance is known",
    )
